// Records over time by severity, as bars; a bar leads to its time.
import { useSignal } from "@preact/signals";
import { compact, count } from "../../format/count";
import { dateTime, clock } from "../../format/time";
import { SEVERITIES, type HistogramBar, type SeverityName } from "../../search/rows";
import { Card } from "../../ui/card";

const SHOWN: readonly SeverityName[] = ["unset", "trace", "debug", "info", "warn", "error", "fatal"];
const HEIGHT = 96;

const allOf = (bar: HistogramBar): number => SHOWN.reduce((all, name) => all + bar[name], 0);

/** `end`, in milliseconds, is where the last bar ends. */
export function Histogram({ bars, end, select }: { bars: readonly HistogramBar[]; end: number; select: (from: number, to: number) => void }) {
  const hovered = useSignal<number | undefined>(undefined);
  const most = Math.max(1, ...bars.map(allOf));
  const total = bars.reduce((all, bar) => all + allOf(bar), 0);
  const begin = (index: number): number => (index < bars.length ? Date.parse(bars[index]?.time ?? "") : end);
  const bar = hovered.value === undefined ? undefined : bars[hovered.value];
  const note = bar ? `${clock(Date.parse(bar.time))}: ${count(allOf(bar))}${detail(bar)}` : `${count(total)} records`;
  return (
    <Card title="Over time" note={note}>
      <div class="histogram" role="group" aria-label="Records over time" onMouseLeave={() => (hovered.value = undefined)} onKeyDown={moveByArrows}>
        {bars.map((bar, index) => (
          <button
            type="button"
            key={bar.time}
            class="histogram-bar"
            tabIndex={index === (hovered.value ?? bars.length - 1) ? 0 : -1}
            aria-label={`${dateTime(begin(index))}: ${count(allOf(bar))} records${detail(bar)}`}
            onMouseEnter={() => (hovered.value = index)}
            onFocus={() => (hovered.value = index)}
            onClick={() => allOf(bar) > 0 && select(begin(index), begin(index + 1))}
          >
            {SEVERITIES.map((name) => bar[name] > 0 && <i key={name} class={`severity-${name}`} style={{ height: `${(bar[name] / most) * HEIGHT}px` }} />)}
          </button>
        ))}
      </div>
      <div class="histogram-ends" aria-hidden="true">
        <span>{dateTime(begin(0))}</span>
        <span>at most {compact(most)}</span>
        <span>{dateTime(end)}</span>
      </div>
    </Card>
  );
}

/** One stop for all bars, and left and right between them. */
function moveByArrows(event: KeyboardEvent): void {
  if (!(event.target instanceof HTMLElement)) return;
  const next = event.key === "ArrowRight" ? event.target.nextElementSibling : event.key === "ArrowLeft" ? event.target.previousElementSibling : null;
  if (!(next instanceof HTMLElement)) return;
  next.focus();
  event.preventDefault();
}

function detail(bar: HistogramBar): string {
  const parts = (["warn", "error", "fatal"] as const).filter((name) => bar[name] > 0).map((name) => `${count(bar[name])} ${name}`);
  return parts.length > 0 ? ` (${parts.join(", ")})` : "";
}
