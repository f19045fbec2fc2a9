// Asks a search when the address changes, and drops the one before.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { search } from "../../search/answer";

export type Found<T> =
  | { kind: "none" }
  | { kind: "busy"; last: T | undefined }
  | { kind: "missing"; why: string }
  | { kind: "failed"; why: string }
  | { kind: "found"; value: T; milliseconds: number };

/** `key` says which search it is; nothing is asked while it is undefined. */
export function useSearch<T>(kind: string, key: string | undefined, query: () => Readonly<Record<string, unknown>>): Signal<Found<T>> {
  const found = useSignal<Found<T>>({ kind: "none" });
  useEffect(() => {
    if (key === undefined) return;
    const ended = new AbortController();
    const before = found.peek();
    found.value = { kind: "busy", last: before.kind === "found" ? before.value : undefined };
    const began = performance.now();
    void search<T>(kind, query(), ended.signal).then((answer) => {
      if (ended.signal.aborted) return;
      if (answer.ok) found.value = { kind: "found", value: answer.value, milliseconds: performance.now() - began };
      else found.value = answer.status === 404 ? { kind: "missing", why: answer.message } : { kind: "failed", why: answer.message };
    });
    return () => ended.abort();
  }, [kind, key]);
  return found;
}

/** What is shown: the newest answer, or the last one while another is made. */
export const shown = <T>(found: Found<T>): T | undefined => (found.kind === "found" ? found.value : found.kind === "busy" ? found.last : undefined);
