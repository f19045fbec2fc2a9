// Metrics: their names, and plots of them.
import type { SearchEnd } from "./answer";

export interface FoundMetric {
  name: string;
  unit?: string | null;
  kind?: string | null;
  description?: string | null;
  /** Names of labels that its points have. */
  labels?: string[];
}

export interface MetricsAnswer extends SearchEnd {
  metrics: FoundMetric[];
}

export interface PlotSeries {
  labels: Readonly<Record<string, string>>;
  values: (number | null)[];
}

export interface PlotAnswer extends SearchEnd {
  /** When each step ends. */
  times: string[];
  series: PlotSeries[];
}

/** What can be done with the points of a step. */
export const FUNCTIONS: readonly (readonly [string, string])[] = [
  ["rate", "rate a second"],
  ["increase", "increase"],
  ["average", "average"],
  ["minimum", "least"],
  ["maximum", "most"],
  ["sum", "sum"],
  ["last", "last value"],
  ["quantile", "quantile of a histogram"],
];

/** The function that most want for a metric of this name and kind. */
export function usualFunction(metric: FoundMetric | undefined): string {
  const kind = metric?.kind ?? "";
  if (/hist|summary/i.test(kind)) return "quantile";
  if (/sum|counter/i.test(kind) || /_(total|count|sum|bucket)$/.test(metric?.name ?? "")) return "rate";
  return "average";
}

/** The labels in which series differ, so that only those name them. */
export function seriesName(series: PlotSeries, all: readonly PlotSeries[]): string {
  const names = new Set(all.flatMap((one) => Object.keys(one.labels)));
  const differing = [...names].filter((name) => new Set(all.map((one) => one.labels[name])).size > 1);
  const shown = differing.length > 0 ? differing : Object.keys(series.labels).slice(0, 2);
  return shown.map((name) => `${name}=${series.labels[name] ?? ""}`).join(" ") || "all";
}
