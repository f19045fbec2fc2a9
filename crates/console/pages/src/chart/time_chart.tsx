// A chart over time: uPlot, in the colours of the style sheet, drawn anew when a step is over.
import { effect, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock } from "../format/time";
import { color, scheme } from "../ui/theme";
import { placeAfter } from "./moment";
import { binaryCeiling, ceiling } from "./scale";

export interface ChartSeries {
  label: string;
  /** A colour of the style sheet, by its name. */
  color: string;
  /** `line`, `area`, or `bars`, which have a scale of their own and stand in the lowest quarter. */
  kind: "line" | "area" | "bars";
}

export interface ChartData {
  /** In seconds since 1970. */
  times: number[];
  series: (number | null)[][];
}

interface TimeChartProps {
  series: ChartSeries[];
  /** Reads the data; called again when the signals that it reads change. */
  read: () => ChartData;
  height: number;
  /** What is seen, in a sentence. */
  label: string;
  format: (value: number) => string;
  /** Steps of the axis are powers of two: for bytes. */
  binary?: boolean;
  /** The place under the pointer, or where keys have moved to; nothing when it is elsewhere. With it, the chart takes the focus. */
  hovered?: Signal<number | undefined>;
  /** Called with the borders of a stretch of time that was drawn with the pointer, in seconds. */
  select?: (from: number, to: number) => void;
}

export function TimeChart({ series, read, height, label, format, binary = false, hovered, select }: TimeChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const drawnChart = useRef<uPlot | undefined>(undefined);
  const names = series.map((one) => one.label + one.color).join();

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let chart: uPlot | undefined;
    const stop = effect(() => {
      scheme.value;
      chart?.destroy();
      chart = new uPlot(options(series, element.clientWidth, height, { format, binary, hovered, select }), [[], ...series.map(() => [])] as uPlot.AlignedData, element);
      const drawn = chart;
      drawnChart.current = chart;
      const stopData = effect(() => {
        const { times, series: values } = read();
        drawn.setData([times, ...values] as uPlot.AlignedData);
      });
      return stopData;
    });
    const size = new ResizeObserver(() => chart?.setSize({ width: element.clientWidth, height }));
    size.observe(element);
    return () => {
      size.disconnect();
      stop();
      chart?.destroy();
      drawnChart.current = undefined;
    };
  }, [names, height]);

  if (!hovered) return <div ref={box} class="chart" role="img" aria-label={label} />;
  const { times, series: values } = read();
  const last = Math.max(0, times.length - 1);
  const shown = Math.min(hovered.value ?? last, last);
  const texts = series.slice(0, MOST_SPOKEN).map((one, index) => `${one.label} ${spoken(values[index]?.[shown], format)}`);
  const show = (place: number | undefined): void => {
    const at = place === undefined ? undefined : times[place];
    drawnChart.current?.setCursor({ left: at === undefined ? -10 : drawnChart.current.valToPos(at, "x"), top: at === undefined ? -10 : 0 });
  };
  const move = (event: KeyboardEvent): void => {
    const place = placeAfter(event.key, hovered.peek(), times.length);
    if (place === undefined && event.key !== "Escape") return;
    show(place);
    if (place !== undefined) event.preventDefault();
  };
  return (
    <div
      ref={box}
      class="chart"
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={shown}
      aria-valuetext={`${clock((times[shown] ?? 0) * 1000)}: ${texts.join(", ")}`}
      onKeyDown={move}
      onBlur={() => show(undefined)}
    />
  );
}

/** A chart of many series says the first ones alone. */
const MOST_SPOKEN = 6;

const spoken = (value: number | null | undefined, format: (value: number) => string): string => (value === null || value === undefined ? "unknown" : format(value));

interface ChartWays {
  format: (value: number) => string;
  binary: boolean;
  hovered: Signal<number | undefined> | undefined;
  select: ((from: number, to: number) => void) | undefined;
}

function options(
  series: ChartSeries[],
  width: number,
  height: number,
  { format, binary, hovered, select }: ChartWays,
): uPlot.Options {
  const [ink, line, font] = [color("dim"), color("line"), `11px ${getComputedStyle(document.body).fontFamily}`];
  const bars = uPlot.paths.bars?.({ size: [0.7, 12] });
  return {
    width,
    height,
    padding: [10, 6, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: select !== undefined, y: false, setScale: false } },
    scales: {
      y: { range: (_chart, _low, high) => [0, binary ? binaryCeiling(high) : ceiling(high)] },
      bars: { range: (_chart, _low, high) => [0, Math.max(high ?? 0, 1) * 4] },
    },
    axes: [
      { stroke: ink, font, grid: { show: false }, ticks: { stroke: line, width: 1, size: 4 }, size: 26, gap: 4, space: 70, values: (_chart, ticks) => ticks.map(timeLabel) },
      { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, size: binary ? 62 : 46, gap: 6, space: 34, ...(binary ? { incrs: POWERS } : {}), values: (_chart, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [
      {},
      ...series.map((one): uPlot.Series => {
        const stroke = color(one.color);
        if (one.kind === "bars") return { scale: "bars", stroke, fill: stroke, width: 0, points: { show: false }, ...(bars ? { paths: bars } : {}) };
        return { scale: "y", stroke, width: 1.75, points: { show: false }, spanGaps: false, ...(one.kind === "area" ? { fill: withAlpha(stroke, 0.12) } : {}) };
      }),
    ],
    hooks: {
      setCursor: hovered ? [(chart: uPlot) => (hovered.value = chart.cursor.idx ?? undefined)] : [],
      setSelect: select
        ? [
            (chart: uPlot) => {
              if (chart.select.width < 3) return;
              select(chart.posToVal(chart.select.left, "x"), chart.posToVal(chart.select.left + chart.select.width, "x"));
              chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            },
          ]
        : [],
    },
  };
}

const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** The time of day; with seconds where ticks are closer than a minute. */
function timeLabel(at: number, _index: number, ticks: number[]): string {
  const text = clock(at * 1000);
  const close = ticks.length > 1 && (ticks[1] ?? 0) - (ticks[0] ?? 0) < 60;
  return close ? text : text.slice(0, 5);
}

const withAlpha = (rgb: string, alpha: number): string => {
  const parts = rgb.match(/[\d.]+/g);
  return parts && rgb.startsWith("rgb") ? `rgba(${parts.slice(0, 3).join(",")},${alpha})` : rgb;
};
