// What a search says beside what it found: that it runs, failed, is not there, or has not everything.
import { session } from "../../data/session";
import { count } from "../../format/count";
import { duration } from "../../format/duration";
import { harmless, sentence } from "../../format/text";
import { dateTime } from "../../format/time";
import type { SearchEnd } from "../../search/answer";
import { Card, Empty } from "../../ui/card";
import { Copy } from "../../ui/copy";
import { Ticked } from "../../ui/ticked";
import type { Found } from "./use_search";

export function Outcome<T extends SearchEnd>({ found }: { found: Found<T> }) {
  switch (found.kind) {
    case "missing":
      return <NoSearch />;
    case "failed":
      return (
        <p class="notice warn" role="alert">
          <Ticked>{sentence(harmless(found.why))}</Ticked>
        </p>
      );
    case "found":
      return <Missing end={found.value} />;
    default:
      return null;
  }
}

/** What the answer may lack. */
export function Missing({ end }: { end: SearchEnd }) {
  const why = end.incomplete.map((reason) => `${sentence(harmless(reason))}.`);
  if (end.answer_cut) why.push("The answer was too long: its last rows are left out.");
  if (why.length === 0) return null;
  return (
    <div class="notice">
      <b>This may not be all.</b>
      {why.map((reason) => (
        <p key={reason}>
          <Ticked>{reason}</Ticked>
        </p>
      ))}
    </div>
  );
}

/** How many were found, where, and how long it took: for the note of a card. */
export function noteOf<T extends SearchEnd>(rows: number, found: Found<T>): string {
  if (found.kind !== "found") return found.kind === "busy" ? "searching…" : "";
  const { has_more: more, from_journal: journal, lake, journal: { since } } = found.value;
  const oldest = Date.parse(since ?? "");
  const parts = [more ? `the newest ${count(rows)}` : count(rows)];
  if (lake !== null && journal > 0) parts.push(`${count(journal)} of them from the journal`);
  parts.push(`in ${duration(found.milliseconds / 1000)}`);
  if (lake === null) parts.push(Number.isFinite(oldest) ? `there is no lake, and the journal goes back to ${dateTime(oldest)}` : "there is no lake");
  return parts.join(", ");
}

/** The same search for DuckDB, to take away. */
export function Sql({ answer }: { answer: SearchEnd }) {
  if (answer.sql === null) return null;
  return <Copy text={answer.sql} label="Copy as SQL" what="this search, for DuckDB over the files of the lake" />;
}

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
