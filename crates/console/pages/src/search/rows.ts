// What a search finds: the shapes of `crates/search`.

export type Attributes = Readonly<Record<string, unknown>>;

interface FoundRow {
  time: string;
  service: string;
  trace_id: string | null;
  span_id: string | null;
  scope: string | null;
  attributes: Attributes | null;
  resource: Attributes | null;
  /** `lake`, `journal` or `dead letter`. */
  from: string;
  /** Whether texts of it were too long, and are cut. */
  cut: boolean;
}

export interface LogRow extends FoundRow {
  severity: number;
  severity_text: string | null;
  event_name: string | null;
  body: string | null;
  body_is_json?: boolean;
}

/** What happened in a span, such as an exception. */
export interface SpanEvent {
  time: string;
  name: string;
  attributes: Attributes | null;
}

export interface SpanRow extends FoundRow {
  name: string | null;
  duration_ns: number;
  kind: number;
  status: number;
  status_message: string | null;
  parent_span_id: string | null;
  events: SpanEvent[];
}

/** A point of a metric, or a histogram. */
export interface PointRow {
  time: string;
  service: string;
  name: string | null;
  unit: string | null;
  /** Of a point. */
  value?: number | null;
  /** Of a point of a summary. */
  quantile?: number | null;
  /** Of a histogram. */
  count?: number | null;
  sum?: number | null;
  attributes: Attributes | null;
  resource: Attributes | null;
  cut: boolean;
}

/** What a peer rejected for good. */
export interface DeadLetter {
  id: number;
  time: string;
  sink: string;
  tenant: string;
  signal: string;
  protocol: string;
  items: number;
  bytes: number;
  reason: string;
}

export interface FoundTrace {
  trace_id: string;
  time: string;
  duration_ns: number;
  name: string;
  service: string;
  has_root: boolean;
  spans: number;
  errors: number;
}

export const SEVERITIES = ["unset", "trace", "debug", "info", "warn", "error", "fatal"] as const;
export type SeverityName = (typeof SEVERITIES)[number];

export type HistogramBar = { time: string } & Record<SeverityName, number>;

/** The name of a severity that is numbered as OpenTelemetry numbers it. */
export const severityName = (severity: number): SeverityName => SEVERITIES[Math.min(SEVERITIES.length - 1, Math.max(0, Math.floor((severity + 3) / 4)))] ?? "unset";

const KINDS = ["", "internal", "server", "client", "producer", "consumer"];
export const kindName = (kind: number): string => KINDS[kind] ?? "";

export const FAILED = 2;

/** The time of a row in nanoseconds since its day began: as exact as numbers are. */
export function nanoseconds(time: string): number {
  const match = /T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?/.exec(time);
  if (!match) return 0;
  const day = Math.floor((Date.parse(time) || 0) / 86_400_000) % 10;
  const seconds = day * 86_400 + Number(match[1]) * 3_600 + Number(match[2]) * 60 + Number(match[3]);
  return seconds * 1e9 + Number((match[4] ?? "0").padEnd(9, "0"));
}
