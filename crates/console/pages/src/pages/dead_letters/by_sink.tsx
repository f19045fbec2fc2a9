import type { LetterAction } from "../../data/dead_letters";
import { count } from "../../format/count";
import { harmless } from "../../format/text";
import { link } from "../../router";
import { Table, type Column } from "../../ui/table";

/** The letters of a sink. */
export interface SinkLetters {
  sink: string;
  letters: number;
  items: number;
  /** The number of the newest. */
  through: number;
}

/** How many letters each sink has, and what can be done with them. */
export function LettersBySink({ sinks, order }: { sinks: readonly SinkLetters[]; order: (action: LetterAction, sink: SinkLetters) => void }) {
  const columns: Column<SinkLetters>[] = [
    { title: "Sink", head: true, cell: ({ sink }) => <a href={link("sinks", sink)}>{harmless(sink)}</a> },
    { title: "Letters", right: true, cell: ({ letters }) => count(letters) },
    { title: "Items", right: true, cell: ({ items }) => count(items) },
    {
      title: "Actions",
      cell: (sink) => (
        <span class="buttons">
          <button type="button" class="small" aria-label={`Send again: ${sink.sink}`} onClick={() => order("resend", sink)}>
            Send again
          </button>
          <button type="button" class="small" aria-label={`Discard: ${sink.sink}`} onClick={() => order("discard", sink)}>
            Discard
          </button>
        </span>
      ),
    },
  ];
  return <Table caption="Dead letters by sink" columns={columns} rows={sinks} id={({ sink }) => sink} />;
}
