// The counters of a frame that only grow: what rates are made of.
import type { Counts, Status } from "./status";

/** Counters by key: `in`, `out`, `refused`, `bytes`, `source:NAME:items`, `sink:NAME:out`, … */
export type Counters = ReadonlyMap<string, number>;

export const sum = (counts: Counts): number => {
  let all = 0;
  for (const name in counts) all += counts[name] ?? 0;
  return all;
};

export const sourceKey = (name: string, what: "items" | "requests" | "refused" | "bytes"): string => `source:${name}:${what}`;
export const sinkKey = (name: string, what: "out" | "dropped" | "failures" | "bytes"): string => `sink:${name}:${what}`;
export const reasonKey = (reason: string): string => `reason:${reason}`;

export function countersOf(status: Status): Counters {
  const counters = new Map<string, number>();
  const add = (key: string, count: number): void => {
    counters.set(key, (counters.get(key) ?? 0) + count);
  };
  for (const key of ["in", "out", "refused", "bytes"]) counters.set(key, 0);
  for (const source of status.books.sources) {
    const items = sum(source.items);
    const refused = sum(source.refused) + sum(source.items_refused);
    add("in", items);
    add("refused", refused);
    add("bytes", source.bytes);
    add(sourceKey(source.name, "items"), items + source.forwarded);
    add(sourceKey(source.name, "requests"), source.received);
    add(sourceKey(source.name, "refused"), refused);
    add(sourceKey(source.name, "bytes"), source.bytes);
    for (const refusals of [source.refused, source.items_refused]) {
      for (const reason in refusals) add(reasonKey(reason), refusals[reason] ?? 0);
    }
  }
  for (const sink of status.sinks) {
    add("out", sink.delivered);
    add(sinkKey(sink.name, "out"), sink.delivered);
    add(sinkKey(sink.name, "dropped"), sum(sink.dropped));
    add(sinkKey(sink.name, "failures"), sink.failures);
    add(sinkKey(sink.name, "bytes"), sink.bytes);
  }
  return counters;
}
