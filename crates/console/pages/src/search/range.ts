// The time of a search: the last so many minutes, or between two moments.

export interface TimeRange {
  from: number;
  to: number;
}

export const SPANS: readonly [string, string, number][] = [
  ["15m", "last 15 minutes", 15 * 60_000],
  ["1h", "last hour", 3_600_000],
  ["6h", "last 6 hours", 6 * 3_600_000],
  ["24h", "last 24 hours", 24 * 3_600_000],
  ["7d", "last 7 days", 7 * 24 * 3_600_000],
];

export const USUAL_SPAN = "1h";

/** The times that the parameters of a page mean now. */
export function rangeOf(query: URLSearchParams, now: number): TimeRange {
  const from = Date.parse(query.get("from") ?? "");
  const to = Date.parse(query.get("to") ?? "");
  if (Number.isFinite(from) && Number.isFinite(to) && from < to) return { from, to };
  const span = SPANS.find(([id]) => id === query.get("last")) ?? SPANS.find(([id]) => id === USUAL_SPAN);
  return { from: now - (span?.[2] ?? 3_600_000), to: now };
}

export const isFixed = (query: URLSearchParams): boolean => query.get("from") !== null && query.get("to") !== null;

export const iso = (at: number): string => new Date(at).toISOString();
