import { items, requests } from "../../data/books";
import { part } from "../../data/store";
import type { Books } from "../../data/status";
import { count } from "../../format/count";
import { link } from "../../router";
import { Card } from "../../ui/card";
import { EquationLine } from "../../ui/equation";

const MOST = 6;
const books = part((status): Books | undefined => status.books, undefined);

/** Everything received is somewhere: the difference is zero, or there is a mistake in the program. */
export function BooksCard() {
  const all = books.value;
  if (!all) return null;
  const sinks = [...all.sinks].sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference));
  const closed = all.difference === 0;
  return (
    <Card title="Books" note={closed ? "The books close." : undefined} class="books">
      {!closed && (
        <p class="say bad">The books do not close: {count(all.difference)} unexplained. This is a mistake in the program, please report it.</p>
      )}
      <ul class="equations">
        <EquationLine equation={requests(all)} href={link("sources")} />
        <EquationLine
          equation={{
            name: "Journal",
            left: [["appended", all.journal.appended]],
            right: [
              ["accepted", all.journal.accepted],
              ["being written", Math.max(0, all.journal.appended - all.journal.accepted - all.journal.difference)],
            ],
            difference: all.journal.difference,
          }}
          href={link("journal")}
        />
        {sinks.slice(0, MOST).map((sink) => (
          <EquationLine key={sink.name} equation={items(sink)} href={link("sinks", sink.name)} />
        ))}
      </ul>
      {sinks.length > MOST && (
        <p class="more">
          <a href={link("sinks")}>{count(sinks.length - MOST)} more sinks</a>, each with a difference of at most {count(Math.abs(sinks[MOST]?.difference ?? 0))}
        </p>
      )}
    </Card>
  );
}
