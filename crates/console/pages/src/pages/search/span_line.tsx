import { useState } from "preact/hooks";
import { count, plural } from "../../format/count";
import { duration } from "../../format/duration";
import { cut, harmless } from "../../format/text";
import { clockMs } from "../../format/time";
import { kindName } from "../../search/rows";
import type { WaterfallRow } from "../../search/waterfall";
import { AttributeList } from "../../ui/attributes";
import { Copy } from "../../ui/copy";
import { Facts } from "../../ui/facts";
import { LogLine } from "./log_line";

const DEEPEST = 12;

interface SpanLineProps {
  row: WaterfallRow;
  /** Which colour its service has. */
  color: number;
  /** Of the whole trace, in nanoseconds. */
  duration: number;
  folded: boolean;
  fold: (id: string) => void;
}

/** A span: its name on the left, its time on the right; whole when it is pressed. */
export function SpanLine({ row, color, duration: whole, folded, fold }: SpanLineProps) {
  const [open, setOpen] = useState(false);
  const { span } = row;
  return (
    <li class={row.failed ? "span failed" : "span"}>
      <div class="span-row">
        <div class="span-tree" style={{ paddingLeft: `${Math.min(row.depth, DEEPEST) * 14}px` }}>
          {row.below > 0 && span.span_id !== null ? (
            <button type="button" class="fold" aria-expanded={!folded} aria-label={folded ? `Show ${plural(row.below, "span")} below` : `Hide ${plural(row.below, "span")} below`} onClick={() => fold(span.span_id ?? "")}>
              {folded ? "▸" : "▾"}
            </button>
          ) : (
            <span class="fold" aria-hidden="true" />
          )}
          <button type="button" class="span-open" aria-expanded={open} onClick={() => setOpen(!open)}>
            <i class={`key service${color}`} aria-hidden="true" />
            <span class="span-name">{cut(harmless(span.name ?? "(no name)"), 120)}</span>
            <span class="span-service">{cut(harmless(span.service), 40)}</span>
            {folded && <span class="span-below">+{count(row.below)}</span>}
            {row.failed && <span class="span-failed">failed</span>}
            <span class="unseen">, {duration(span.duration_ns / 1e9)}</span>
          </button>
        </div>
        <div class="span-time" aria-hidden="true" onClick={() => setOpen(!open)}>
          <i class={`service${color}`} style={{ left: `${row.start * 100}%`, width: `${Math.max(0.25, row.length * 100)}%` }} />
          {row.logs.map((log, index) => (
            <b key={index} style={{ left: `${logPlace(log.time, row, whole) * 100}%` }} />
          ))}
          <Took row={row} />
        </div>
      </div>
      {open && (
        <div class="details">
          <SpanDetails row={row} />
        </div>
      )}
    </li>
  );
}

/** How long it took: behind its bar, before it, or on it, where there is room. */
function Took({ row: { start, length, span } }: { row: WaterfallRow }) {
  const text = duration(span.duration_ns / 1e9);
  if (start + length < 0.8) return <span style={{ left: `${(start + length) * 100}%` }}>{text}</span>;
  if (start > 0.2) return <span style={{ right: `${(1 - start) * 100}%` }}>{text}</span>;
  return (
    <span class="on-bar" style={{ right: `${(1 - start - length) * 100}%` }}>
      {text}
    </span>
  );
}

/** Where a log record stands in the whole; at its span's beginning when its clock is another one. */
function logPlace(time: string, row: WaterfallRow, whole: number): number {
  const after = (Date.parse(time) - Date.parse(row.span.time)) * 1e6;
  const place = row.start + after / Math.max(1, whole);
  return Number.isFinite(place) && place >= 0 && place <= 1 ? place : row.start;
}

/** What there is to know of a span. */
export function SpanDetails({ row: { span, logs, failed } }: { row: Pick<WaterfallRow, "span" | "logs" | "failed"> }) {
  return (
    <>
      <div class="detail-links">
        <span class="dim">from the {span.from}</span>
        <Copy text={() => JSON.stringify(span, null, 2)} label="Copy as JSON" what="this span" />
      </div>
      <Facts
        facts={[
          { name: "span", value: <code>{harmless(span.span_id ?? "–")}</code> },
          kindName(span.kind) !== "" && { name: "kind", value: kindName(span.kind) },
          { name: "began", value: harmless(span.time) },
          failed && { name: "failed", value: harmless(span.status_message ?? "without a message"), tone: "bad" },
          span.scope !== null && { name: "library", value: harmless(span.scope) },
        ]}
      />
      {span.cut && <p class="say dim">Texts of this span were too long, and are cut.</p>}
      {logs.length > 0 && (
        <div class="attributes">
          <h3>Log records</h3>
          <ul class="log-lines">
            {logs.map((log, index) => (
              <LogLine key={index} row={log} quiet />
            ))}
          </ul>
        </div>
      )}
      {span.events.map((event, index) => (
        <AttributeList key={index} title={`Event: ${cut(harmless(event.name), 120)}, ${clockMs(Date.parse(event.time))}`} attributes={event.attributes} always />
      ))}
      <AttributeList title="Attributes" attributes={span.attributes} />
      <AttributeList title="Resource" attributes={span.resource} />
    </>
  );
}
