import { useState } from "preact/hooks";
import { indented } from "../../format/json";
import { cut, harmless } from "../../format/text";
import { clockMs, utc } from "../../format/time";
import { Copy } from "../../ui/copy";
import type { TapLine } from "./reader";
import { summaryOf } from "./summary";

/** An item in a line; whole when it is pressed. */
export function Line({ line }: { line: TapLine }) {
  const [open, setOpen] = useState(false);
  const summary = summaryOf(line.item);
  return (
    <li class={summary.bad ? "tap-line failed" : "tap-line"}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <time title={summary.time === undefined ? "" : utc(summary.time)}>{summary.time === undefined ? "–" : clockMs(summary.time)}</time>
        <span class="tap-signal">{summary.signal}</span>
        <span class="tap-service">{cut(harmless(summary.service), 40)}</span>
        <span class="tap-title">{cut(harmless(summary.title), 200)}</span>
        <span class="tap-detail">{cut(harmless(summary.detail), 200)}</span>
      </button>
      {open && (
        <div class="tap-whole">
          <Copy text={line.text} label="Copy as JSON" what="this item" />
          <pre tabIndex={0}>{harmless(indented(line.text))}</pre>
        </div>
      )}
    </li>
  );
}
