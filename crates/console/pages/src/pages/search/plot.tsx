import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { TimeChart, type ChartData, type ChartSeries } from "../../chart/time_chart";
import { compact } from "../../format/count";
import { harmless } from "../../format/text";
import { dateTime } from "../../format/time";
import { seriesName, type PlotAnswer } from "../../search/metrics";
import { Empty } from "../../ui/card";

const COLORS = ["part1", "part4", "part2", "part5", "part3", "bad", "warn", "part0"];

/** Series over time, with their values at the pointer, or the last ones. */
export function Plot({ answer, unit, select }: { answer: PlotAnswer; unit: string; select: (from: number, to: number) => void }) {
  const hovered = useSignal<number | undefined>(undefined);
  const { series, data } = useMemo(() => drawn(answer), [answer]);
  if (answer.series.length === 0) return <Empty title="No point was found.">Try a longer time, or fewer conditions.</Empty>;
  const at = hovered.value ?? data.times.length - 1;
  return (
    <>
      <TimeChart key={answer.times.join().length + answer.series.length} series={series} read={() => data} height={300} label={`${series.length} series over time`} format={compact} hovered={hovered} select={select} />
      <p class="more">{data.times[at] === undefined ? "" : dateTime((data.times[at] ?? 0) * 1000)}</p>
      <ul class="plot-legend">
        {series.map((one, index) => (
          <li key={one.label}>
            <i class={`key ${one.color}`} aria-hidden="true" />
            <span class="legend-name">{harmless(one.label)}</span>
            <span class="legend-value">
              {valueText(data.series[index]?.[at])} <small>{unit === "1" ? "" : harmless(unit)}</small>
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

const valueText = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : compact(value));

function drawn(answer: PlotAnswer): { series: ChartSeries[]; data: ChartData } {
  const series = answer.series.map((one, index): ChartSeries => ({ label: seriesName(one, answer.series), color: COLORS[index % COLORS.length] ?? "part1", kind: answer.series.length === 1 ? "area" : "line" }));
  return { series, data: { times: answer.times.map((time) => Date.parse(time) / 1000), series: answer.series.map((one) => one.values) } };
}
