// Reads a frame: the status, the word that it was too long to send, or neither.
import type { Status } from "./status";

/** The version and the commit, where that is known: `0.9.0 (1a2b3c4)`. */
export const versionOf = ({ version, commit }: { version: string; commit?: string }): string => version + (commit ? ` (${commit})` : "");

export type Frame = { kind: "status"; status: Status } | { kind: "too_long" } | { kind: "unreadable"; version?: string };

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
  if (isStatus(value)) return { kind: "status", status: value as unknown as Status };
  // It may be of another version than this page.
  const { version, commit } = value;
  return typeof version === "string" ? { kind: "unreadable", version: versionOf({ version, ...(typeof commit === "string" ? { commit } : {}) }) } : { kind: "unreadable" };
}
