// A trace: a waterfall of its spans, with their attributes and log records.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { count, plural } from "../../format/count";
import { duration } from "../../format/duration";
import { harmless } from "../../format/text";
import { dateTime, utc } from "../../format/time";
import { link, route } from "../../router";
import type { TraceAnswer } from "../../search/answer";
import { iso } from "../../search/range";
import { unfolded, waterfall, type Waterfall } from "../../search/waterfall";
import { Card, Empty, PageHead } from "../../ui/card";
import { Copy } from "../../ui/copy";
import { LogLine } from "./log_line";
import { Outcome, Sql } from "./outcome";
import { SpanLine } from "./span_line";
import { shown, useSearch } from "./use_search";

/** Around a moment that is known to be of the trace, so that a large lake is not searched whole. */
const AROUND_MS = 2 * 3_600_000;

export function TracePage({ id }: { id: string }) {
  const around = Date.parse(route.value.query.get("around") ?? "");
  const found = useSearch<TraceAnswer>("trace", id, () => ({
    trace_id: id,
    ...(Number.isFinite(around) ? { from: iso(around - AROUND_MS), to: iso(around + AROUND_MS) } : {}),
  }));
  const answer = shown(found.value);
  const whole = useMemo(() => (answer ? waterfall(answer.spans ?? [], answer.logs ?? []) : undefined), [answer]);
  return (
    <>
      <p class="back">
        <a href={link("traces")}>← Traces</a>
      </p>
      <TraceHead id={id} whole={whole} answer={answer} />
      <Outcome found={found.value} />
      {found.value.kind === "busy" && !whole && <p class="say dim">Searching…</p>}
      {whole && whole.rows.length === 0 && <Empty title="No span of this trace was found.">It may be older than what is kept, or not have arrived yet.</Empty>}
      {whole && whole.rows.length > 0 && <Spans whole={whole} />}
      {whole && whole.loose.length > 0 && (
        <Card title="Log records beside the spans" note={count(whole.loose.length)}>
          <ul class="log-lines">
            {whole.loose.map((row, index) => (
              <LogLine key={`${row.time} ${index}`} row={row} />
            ))}
          </ul>
        </Card>
      )}
    </>
  );
}

function TraceHead({ id, whole, answer }: { id: string; whole: Waterfall | undefined; answer: TraceAnswer | undefined }) {
  const first = whole?.rows[0]?.span;
  const at = Date.parse(first?.time ?? "");
  return (
    <PageHead title={<span class="cut">{harmless(first?.name ?? "Trace")}</span>} aside={<div class="buttons"><Copy text={id} label="Copy the id" what="of the trace" />{answer && <Sql answer={answer} />}</div>}>
      <code>{harmless(id)}</code>
      {whole && first && (
        <span class="says">
          {Number.isFinite(at) && <time title={utc(at)}>{dateTime(at)}</time>}, {duration(whole.duration / 1e9)}, {plural(whole.rows.length, "span")} of {plural(whole.services.length, "service")}
          {whole.failed > 0 && (
            <>
              , <span class="bad">{count(whole.failed)} failed</span>
            </>
          )}
        </span>
      )}
    </PageHead>
  );
}

const TICKS = [0, 0.25, 0.5, 0.75, 1];

function Spans({ whole }: { whole: Waterfall }) {
  const folded = useSignal<ReadonlySet<string>>(new Set());
  const fold = (id: string): void => {
    const next = new Set(folded.value);
    if (!next.delete(id)) next.add(id);
    folded.value = next;
  };
  return (
    <Card
      title="Spans"
      note={
        <ul class="legend services">
          {whole.services.slice(0, 12).map((service, index) => (
            <li key={service}>
              <i class={`key service${index % 8}`} aria-hidden="true" />
              <span class="legend-name">{harmless(service === "" ? "(no service)" : service)}</span>
            </li>
          ))}
        </ul>
      }
      class="waterfall-card"
    >
      <div class="waterfall-scale" aria-hidden="true">
        {TICKS.map((tick) => (
          <span key={tick}>{duration((whole.duration * tick) / 1e9)}</span>
        ))}
      </div>
      <ol class="waterfall" onKeyDown={moveByArrows}>
        {unfolded(whole.rows, folded.value).map((row, index) => (
          <SpanLine key={`${row.span.span_id ?? ""} ${index}`} row={row} color={whole.services.indexOf(row.span.service) % 8} duration={whole.duration} folded={row.span.span_id !== null && folded.value.has(row.span.span_id)} fold={fold} />
        ))}
      </ol>
    </Card>
  );
}

/** Up and down between the rows. */
function moveByArrows(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  if (!(event.target instanceof HTMLElement) || !(event.currentTarget instanceof HTMLElement)) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>(".span-open")];
  const at = rows.indexOf(event.target);
  if (at < 0) return;
  rows[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  event.preventDefault();
}
