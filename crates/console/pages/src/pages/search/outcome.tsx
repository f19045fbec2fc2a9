// What a search says beside what it found: that it runs, failed, is not there, or has not everything.
import { duration } from "../../format/duration";
import { harmless } from "../../format/text";
import { session } from "../../data/session";
import type { SearchEnd } from "../../search/answer";
import { Card, Empty } from "../../ui/card";
import type { Found } from "./use_search";

export function Outcome<T extends SearchEnd>({ found }: { found: Found<T> }) {
  switch (found.kind) {
    case "missing":
      return <NoSearch />;
    case "failed":
      return (
        <p class="notice warn" role="alert">
          {harmless(found.why)}
        </p>
      );
    case "found":
      return found.value.complete === false ? <p class="notice">{["This is not all.", ...(found.value.notes ?? [])].map(harmless).join(" ")}</p> : null;
    default:
      return null;
  }
}

/** How long it took, for the note of a card. */
export const tookOf = <T,>(found: Found<T>): string => (found.kind === "found" ? `, in ${duration(found.milliseconds / 1000)}` : found.kind === "busy" ? ", searching…" : "");

function NoSearch() {
  return (
    <Card title="Not available">
      {session.value?.search === false ? (
        <Empty title="Search is turned off.">
          Rows are the data itself, so <code>console.search</code> can be off; it is off where the admin address can be reached without credentials.
        </Empty>
      ) : (
        <Empty title="This version does not search.">
          What the lake holds can be read with <code>tidegate lake cat</code> on the machine itself, and with DuckDB from anywhere that reaches its files.
        </Empty>
      )}
    </Card>
  );
}
