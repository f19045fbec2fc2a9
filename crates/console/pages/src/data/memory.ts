// The budget by owner: what the bar shows.
import type { Memory } from "./status";

export interface MemoryPart {
  name: string;
  bytes: number;
  /** What it is, in a few words. */
  what: string;
  /** A colour of the style sheet. */
  color: string;
}

export const overhead = (memory: Memory): number => memory.declared.reduce((all, line) => all + line.declared, 0);
export const payloadUsed = (memory: Memory): number => memory.payload.shares.reduce((all, share) => all + share.used, 0);

const COLORS = 5;

const WHAT: Readonly<Record<string, string>> = {
  ingest: "request bodies",
  decode: "bodies being decompressed and checked",
  egress: "requests to sinks",
  lake: "files being written",
  console: "these pages",
};

/** Declared overhead, the holders of payload, and hot pages; what is left of the limit is free. */
export function memoryParts(memory: Memory): MemoryPart[] {
  const shares = memory.payload.shares.map((share, index) => ({
    name: share.name,
    bytes: share.used,
    what: Object.hasOwn(WHAT, share.name) ? (WHAT[share.name] ?? "") : "",
    color: `part${(index % COLORS) + 1}`,
  }));
  return [
    { name: "reserved", bytes: overhead(memory), what: "for everything but data", color: "part0" },
    ...shares,
    { name: "hot pages", bytes: memory.payload.idle, what: "given up when anyone needs memory", color: "part6" },
  ];
}
