import { TimeChart, type ChartSeries } from "../chart/time_chart";
import { history, now, step } from "../data/store";
import { compact } from "../format/count";
import { Card } from "./card";

/** Rates of counters over the last 15 minutes. */
export function RateChart({ title, series, keys, note, label }: { title: string; series: ChartSeries[]; keys: string[]; note: string; label: string }) {
  const read = () => {
    step.value;
    return history.rates(keys, now.peek());
  };
  return (
    <Card title={title} note={note} class="traffic">
      <TimeChart series={series} read={read} height={190} label={label} format={compact} />
      <ul class="legend chart-legend">
        {series.map((one) => (
          <li key={one.label}>
            <i class={`key ${one.color}`} aria-hidden="true" />
            <span class="legend-name">{one.label}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
