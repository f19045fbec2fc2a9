import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { now } from "../../data/store";
import { count } from "../../format/count";
import { duration } from "../../format/duration";
import { harmless } from "../../format/text";
import { shortTime, utc } from "../../format/time";
import { go, link, route } from "../../router";
import type { TraceListAnswer } from "../../search/answer";
import { iso, rangeOf } from "../../search/range";
import type { FoundTrace } from "../../search/rows";
import { nanosecondsOf, termsOf } from "../../search/terms";
import { Card, Empty, PageHead } from "../../ui/card";
import { Field } from "../../ui/field";
import { Name } from "../../ui/stranger";
import { Table, type Column } from "../../ui/table";
import { draftOf, SearchForm, TextField } from "./form";
import { noteOf, Outcome, Sql } from "./outcome";
import { shown, useSearch } from "./use_search";

const LIMIT = 100;

export function Traces() {
  const { query } = route.value;
  const draft = useSignal(draftOf(query));
  const key = query.toString();
  useEffect(() => {
    draft.value = draftOf(query);
  }, [key]);
  const found = useSearch<TraceListAnswer>("traces", key, () => queryOf(query));
  const answer = shown(found.value);
  const traces = answer?.traces ?? [];
  return (
    <>
      <PageHead title="Traces" aside={<TraceById />}>
        Spans by their trace, newest first, from the lake and from the journal behind it.
      </PageHead>
      <SearchForm page="traces" draft={draft} busy={found.value.kind === "busy"}>
        <TextField label="Name" draft={draft} name="name" placeholder="of a span" />
        <TextField label="At least" draft={draft} name="least" placeholder="100ms" />
        <TextField label="At most" draft={draft} name="most" placeholder="2s" />
        <Field label="Outcome">
          <select value={draft.value["error"] ?? ""} onChange={(event) => (draft.value = { ...draft.value, error: event.currentTarget.value })}>
            <option value="">any</option>
            <option value="true">failed</option>
          </select>
        </Field>
      </SearchForm>
      <Outcome found={found.value} />
      {answer && (
        <Card title="Traces" note={noteOf(traces.length, found.value)} aside={<Sql answer={answer} />}>
          {traces.length === 0 ? (
            <Empty title="Nothing was found.">Try a longer time, or fewer conditions.</Empty>
          ) : (
            <Table caption="Traces" columns={columns(traces)} rows={traces} id={(trace) => trace.trace_id} />
          )}
        </Card>
      )}
    </>
  );
}

function columns(traces: readonly FoundTrace[]): Column<FoundTrace>[] {
  const longest = Math.max(1, ...traces.map((trace) => trace.duration_ns));
  return [
    {
      title: "Trace",
      head: true,
      cell: (trace) => (
        <>
          <a href={link("traces", trace.trace_id, { around: trace.time })}>
            <Name most={96}>{trace.name === "" ? "(no name)" : trace.name}</Name>
          </a>
          <i class="meter" style={{ width: `${(trace.duration_ns / longest) * 100}%` }} aria-hidden="true" />
        </>
      ),
    },
    { title: "Service", cell: (trace) => <Name most={48}>{trace.service}</Name> },
    { title: "Began", cell: (trace) => <Began time={trace.time} /> },
    { title: "Took", right: true, cell: (trace) => duration(trace.duration_ns / 1e9) },
    { title: "Spans", right: true, cell: (trace) => count(trace.spans) },
    { title: "Failed", right: true, cell: (trace) => <span class={trace.errors > 0 ? "bad" : "dim"}>{count(trace.errors)}</span> },
  ];
}

function Began({ time }: { time: string }) {
  const at = Date.parse(time);
  if (!Number.isFinite(at)) return <>{harmless(time)}</>;
  return (
    <time dateTime={time} title={utc(at)}>
      {shortTime(at, now.peek())}
    </time>
  );
}

/** To a trace whose id is known. */
function TraceById() {
  const id = useSignal("");
  const whole = /^[0-9a-f]{32}$/i.test(id.value.trim());
  return (
    <form
      class="by-id"
      onSubmit={(event) => {
        event.preventDefault();
        if (whole) go(link("traces", id.value.trim().toLowerCase()));
      }}
    >
      <input type="text" autocomplete="off" spellcheck={false} aria-label="Trace id" placeholder="Trace id" value={id} onInput={(event) => (id.value = event.currentTarget.value)} />
      <button type="submit" disabled={!whole}>
        Open
      </button>
    </form>
  );
}

function queryOf(query: URLSearchParams): Record<string, unknown> {
  const { from, to } = rangeOf(query, Date.now());
  const text = (name: string): string | undefined => query.get(name) || undefined;
  return {
    from: iso(from),
    to: iso(to),
    service: text("service"),
    name: text("name"),
    min_duration_ns: nanosecondsOf(query.get("least") ?? ""),
    max_duration_ns: nanosecondsOf(query.get("most") ?? ""),
    error: query.get("error") === "true",
    attributes: termsOf(query.get("attributes") ?? ""),
    limit: LIMIT,
  };
}
