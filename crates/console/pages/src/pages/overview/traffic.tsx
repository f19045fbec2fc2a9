// What came in, what went out and what was refused, over the last 15 minutes.
import { useSignal, type Signal } from "@preact/signals";
import { TimeChart, type ChartData, type ChartSeries } from "../../chart/time_chart";
import { history, now, part, rate, step } from "../../data/store";
import { bytes } from "../../format/bytes";
import { compact } from "../../format/count";
import { clock } from "../../format/time";
import { Card } from "../../ui/card";

const sinks = part((status) => status.sinks.length, 0);
const KEYS = ["in", "out", "refused"];
const SERIES: ChartSeries[] = [
  { label: "in", color: "accent", kind: "area" },
  { label: "out", color: "second", kind: "line" },
  { label: "refused", color: "bad", kind: "bars" },
];

function read(): ChartData {
  step.value;
  return history.rates(KEYS, now.peek());
}

export function TrafficCard() {
  const hovered = useSignal<number | undefined>(undefined);
  return (
    <Card title="Traffic" note={<Moment hovered={hovered} />} class="traffic">
      <div class="figures">
        <Figure title="in" unit="items/s" what="in" index={0} hovered={hovered} />
        <Figure title={sinks.value > 1 ? `out, ${sinks.value} sinks` : "out"} unit="items/s" what="out" index={1} hovered={hovered} />
        <Figure title="refused" unit="/s" what="refused" index={2} hovered={hovered} />
        <BytesFigure />
      </div>
      <TimeChart series={SERIES} read={read} height={208} label="Items received and delivered, and requests refused, a second, over the last 15 minutes" format={compact} hovered={hovered} />
    </Card>
  );
}

function Moment({ hovered }: { hovered: Signal<number | undefined> }) {
  const at = hovered.value === undefined ? undefined : read().times[hovered.value];
  return <>{at === undefined ? "last 15 minutes" : `at ${clock(at * 1000)}`}</>;
}

function Figure({ title, unit, what, index, hovered }: { title: string; unit: string; what: string; index: number; hovered: Signal<number | undefined> }) {
  const value = hovered.value === undefined ? rate(what) : read().series[index]?.[hovered.value];
  return (
    <div class={`figure ${what}${what === "refused" && (value ?? 0) > 0 ? " alarm" : ""}`}>
      <span class="figure-title">
        <i class="key" aria-hidden="true" />
        {title}
      </span>
      <span class="figure-value">
        {value === undefined || value === null ? "–" : compact(value)} <small>{unit}</small>
      </span>
    </div>
  );
}

function BytesFigure() {
  const value = rate("bytes");
  return (
    <div class="figure">
      <span class="figure-title">received</span>
      <span class="figure-value">
        {value === undefined ? "–" : bytes(value)} <small>/s</small>
      </span>
    </div>
  );
}
