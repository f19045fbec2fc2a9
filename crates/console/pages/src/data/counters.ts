// The counters of a frame that only grow: what rates are made of.
import { REFUSALS } from "./reasons";
import type { Counts, Status } from "./status";

/** Counters by key: `source:NAME:items`, `sink:NAME:out`, `reason:NAME`, … */
export type Counters = ReadonlyMap<string, number>;

export const sum = (counts: Counts): number => {
  let all = 0;
  for (const name in counts) all += counts[name] ?? 0;
  return all;
};

/** `refused` counts requests, `items_refused` the items that were refused out of requests that were accepted. */
export const sourceKey = (name: string, what: "items" | "requests" | "refused" | "items_refused" | "bytes"): string => `source:${name}:${what}`;
export const sinkKey = (name: string, what: "out" | "dropped" | "failures" | "bytes"): string => `sink:${name}:${what}`;
/** Requests that were refused for it. */
export const reasonKey = (reason: string): string => `reason:${reason}`;

/** What grows with all sources or sinks: its key, and the counters that it sums up, by how their keys begin and end. */
const TOTALS: readonly (readonly [string, string, string])[] = [
  ["in", "source:", ":items"],
  ["refused", "source:", ":refused"],
  ["items_refused", "source:", ":items_refused"],
  ["bytes", "source:", ":bytes"],
  ["out", "sink:", ":out"],
];

export function countersOf(status: Status): Counters {
  const counters = new Map<string, number>();
  const add = (key: string, count: number): void => {
    counters.set(key, (counters.get(key) ?? 0) + count);
  };
  // A reason that did not occur is left out of a frame: its count is known all the same.
  for (const reason of REFUSALS) add(reasonKey(reason), 0);
  for (const source of status.books.sources) {
    add(sourceKey(source.name, "items"), sum(source.items) + source.forwarded);
    add(sourceKey(source.name, "requests"), source.received);
    add(sourceKey(source.name, "refused"), sum(source.refused));
    add(sourceKey(source.name, "items_refused"), sum(source.items_refused));
    add(sourceKey(source.name, "bytes"), source.bytes);
    for (const reason in source.refused) add(reasonKey(reason), source.refused[reason] ?? 0);
  }
  for (const sink of status.sinks) {
    add(sinkKey(sink.name, "out"), sink.delivered);
    add(sinkKey(sink.name, "dropped"), sum(sink.dropped));
    add(sinkKey(sink.name, "failures"), sink.failures);
    add(sinkKey(sink.name, "bytes"), sink.bytes);
  }
  return counters;
}

/**
 * What grew between two frames. A counter that was not there before, or fell, begins at its present value: what it counted
 * until then did not happen in between. So the totals are sums of growth: a sink that goes or comes changes none of them.
 */
export function growth(before: Counters, after: Counters): Counters {
  const grown = new Map<string, number>(TOTALS.map(([total]) => [total, 0]));
  for (const [key, count] of after) {
    const last = before.get(key);
    if (last === undefined) continue;
    const more = Math.max(0, count - last);
    grown.set(key, more);
    const total = TOTALS.find(([, begin, end]) => key.startsWith(begin) && key.endsWith(end))?.[0];
    if (total !== undefined) grown.set(total, (grown.get(total) ?? 0) + more);
  }
  return grown;
}
