// A trace as rows of a waterfall: in the order of its tree, each with its place in the time of the whole.
import { FAILED, nanoseconds, type LogRow, type SpanRow } from "./rows";

export interface WaterfallRow {
  span: SpanRow;
  depth: number;
  /** Where it begins and how long it is, as parts of the whole. */
  start: number;
  length: number;
  /** How many spans are below it. */
  below: number;
  failed: boolean;
  logs: LogRow[];
}

export interface Waterfall {
  rows: WaterfallRow[];
  /** In nanoseconds. */
  duration: number;
  services: string[];
  failed: number;
  /** Log records of the trace that name no span of it. */
  loose: LogRow[];
}

export function waterfall(spans: readonly SpanRow[], logs: readonly LogRow[]): Waterfall {
  const starts = spans.map((span) => nanoseconds(span.time));
  const begin = Math.min(...starts);
  const end = Math.max(...spans.map((span, index) => (starts[index] ?? 0) + span.duration_ns));
  const duration = spans.length > 0 ? Math.max(1, end - begin) : 0;
  const ordered = inTreeOrder(spans, starts);
  const bySpan = new Map<string, LogRow[]>();
  const ids = new Set(spans.map((span) => span.span_id));
  const loose: LogRow[] = [];
  for (const log of logs) {
    if (log.span_id !== null && ids.has(log.span_id)) bySpan.set(log.span_id, [...(bySpan.get(log.span_id) ?? []), log]);
    else loose.push(log);
  }
  const rows = ordered.map(({ index, depth, below }): WaterfallRow => {
    const span = spans[index] as SpanRow;
    return {
      span,
      depth,
      below,
      start: ((starts[index] ?? 0) - begin) / duration,
      length: span.duration_ns / duration,
      failed: span.status === FAILED,
      logs: span.span_id === null ? [] : (bySpan.get(span.span_id) ?? []),
    };
  });
  return { rows, duration, services: [...new Set(ordered.map(({ index }) => spans[index]?.service ?? ""))], failed: rows.filter((row) => row.failed).length, loose };
}

/** Parents before children, children by their beginning. A span whose parent is not there is a root; so is one of a circle. */
function inTreeOrder(spans: readonly SpanRow[], starts: readonly number[]): { index: number; depth: number; below: number }[] {
  const byId = new Map<string, number>();
  spans.forEach((span, index) => {
    if (span.span_id !== null) byId.set(span.span_id, index);
  });
  const children = new Map<number, number[]>();
  const roots: number[] = [];
  spans.forEach((span, index) => {
    const parent = span.parent_span_id === null ? undefined : byId.get(span.parent_span_id);
    if (parent === undefined || parent === index) roots.push(index);
    else children.set(parent, [...(children.get(parent) ?? []), index]);
  });
  const early = (a: number, b: number): number => (starts[a] ?? 0) - (starts[b] ?? 0) || a - b;
  const ordered: { index: number; depth: number; below: number }[] = [];
  const seen = new Set<number>();
  const visit = (first: number): void => {
    const stack = [{ index: first, depth: 0 }];
    while (stack.length > 0) {
      const { index, depth } = stack.pop() as { index: number; depth: number };
      if (seen.has(index)) continue;
      seen.add(index);
      ordered.push({ index, depth, below: 0 });
      const below = [...(children.get(index) ?? [])].sort(early).reverse();
      for (const child of below) stack.push({ index: child, depth: depth + 1 });
    }
  };
  roots.sort(early).forEach(visit);
  // What is left is in a circle.
  spans.forEach((_, index) => visit(index));
  // From the end, so that what is below a row is counted before it: by depth, all of the spans since the last row that is less deep.
  const open: number[] = [];
  for (let place = ordered.length - 1; place >= 0; place--) {
    const row = ordered[place] as { depth: number; below: number };
    row.below = open[row.depth + 1] ?? 0;
    open.length = row.depth + 1;
    open[row.depth] = (open[row.depth] ?? 0) + 1 + row.below;
  }
  return ordered;
}

/** The rows that are seen when some are folded, by the ids of their spans. */
export function unfolded(rows: readonly WaterfallRow[], folded: ReadonlySet<string>): WaterfallRow[] {
  const seen: WaterfallRow[] = [];
  let under: number | undefined;
  for (const row of rows) {
    if (under !== undefined && row.depth > under) continue;
    under = row.span.span_id !== null && folded.has(row.span.span_id) ? row.depth : undefined;
    seen.push(row);
  }
  return seen;
}
