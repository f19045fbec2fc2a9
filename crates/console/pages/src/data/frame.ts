// Reads a frame: the status, the word that it was too long to send, or neither.
import type { Status } from "./status";

export type Frame = { kind: "status"; status: Status } | { kind: "too_long" } | { kind: "unreadable" };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The parts without which no page can be drawn. The server and the page are of one build, so that what is in them is known. */
function isStatus(value: Record<string, unknown>): boolean {
  const { state, reason, memory, journal, sinks, books } = value;
  return (
    typeof state === "string" &&
    typeof reason === "string" &&
    isObject(memory) &&
    Array.isArray(memory["declared"]) &&
    isObject(memory["payload"]) &&
    isObject(journal) &&
    Array.isArray(sinks) &&
    isObject(books) &&
    Array.isArray(books["sources"]) &&
    Array.isArray(books["sinks"])
  );
}

export function readFrame(text: string): Frame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "unreadable" };
  }
  if (!isObject(value)) return { kind: "unreadable" };
  if (value["too_long"] === true) return { kind: "too_long" };
  return isStatus(value) ? { kind: "status", status: value as unknown as Status } : { kind: "unreadable" };
}
