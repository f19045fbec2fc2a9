import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { now } from "../../data/store";
import { route } from "../../router";
import type { LogAnswer } from "../../search/answer";
import { iso, rangeOf } from "../../search/range";
import { SEVERITIES } from "../../search/rows";
import { termsOf } from "../../search/terms";
import { Card, Empty, PageHead } from "../../ui/card";
import { Field } from "../../ui/field";
import { draftOf, narrowBy, SearchForm, searchFor, TextField } from "./form";
import { Histogram } from "./histogram";
import { LogLine } from "./log_line";
import { noteOf, Outcome, Sql } from "./outcome";
import { shown, useSearch } from "./use_search";

const BARS = 60;
const LIMIT = 200;

export function Logs() {
  const { query } = route.value;
  const draft = useSignal(draftOf(query));
  const key = query.toString();
  useEffect(() => {
    draft.value = draftOf(query);
  }, [key]);
  const found = useSearch<LogAnswer>("logs", key, () => queryOf(query));
  const answer = shown(found.value);
  const rows = answer?.logs ?? [];
  return (
    <>
      <PageHead title="Logs">Log records in the lake and in the journal behind it, newest first: what was acknowledged a second ago is found.</PageHead>
      <SearchForm page="logs" draft={draft} busy={found.value.kind === "busy"}>
        <Field label="Severity">
          <select value={draft.value["severity"] ?? ""} onChange={(event) => (draft.value = { ...draft.value, severity: event.currentTarget.value })}>
            <option value="">any</option>
            {SEVERITIES.slice(1).map((name) => (
              <option key={name} value={name}>
                {name === "fatal" ? name : `${name} and above`}
              </option>
            ))}
          </select>
        </Field>
        <TextField label="Text" draft={draft} name="text" placeholder="in the body" />
        <TextField label="Trace" draft={draft} name="trace" placeholder="id" />
      </SearchForm>
      <Outcome found={found.value} />
      {answer && (
        <>
          {answer.histogram && answer.histogram.length > 0 && (
            <Histogram bars={answer.histogram} end={rangeOf(query, now.peek()).to} select={(from, to) => searchFor("logs", { ...withoutTime(draft.peek()), from: iso(from), to: iso(to) })} />
          )}
          <Card title="Records" note={noteOf(rows.length, found.value)} aside={<Sql answer={answer} />}>
            {rows.length === 0 ? (
              <Empty title="Nothing was found.">Try a longer time, or fewer conditions.</Empty>
            ) : (
              <ul class="log-lines">
                {rows.map((row, index) => (
                  <LogLine key={`${row.time} ${index}`} row={row} narrow={narrowBy("logs")} />
                ))}
              </ul>
            )}
          </Card>
        </>
      )}
    </>
  );
}

function withoutTime(draft: Readonly<Record<string, string>>): Record<string, string> {
  const { last: _last, from: _from, to: _to, ...rest } = draft;
  return rest;
}

function queryOf(query: URLSearchParams): Record<string, unknown> {
  const { from, to } = rangeOf(query, Date.now());
  const text = (name: string): string | undefined => query.get(name) || undefined;
  return { from: iso(from), to: iso(to), service: text("service"), severity: text("severity"), text: text("text"), trace_id: text("trace"), attributes: termsOf(query.get("attributes") ?? ""), limit: LIMIT, histogram: BARS };
}
