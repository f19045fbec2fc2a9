// The balance sheet in sums: what was received is somewhere, or was dropped for a reason.
import { sum } from "./counters";
import type { Books, SinkBook } from "./status";

export interface Equation {
  /** Of what. */
  name: string;
  /** The left side. */
  left: [string, number][];
  right: [string, number][];
  difference: number;
}

/** Requests: received = accepted + refused + open. */
export function requests(books: Books): Equation {
  const all = { received: 0, accepted: 0, refused: 0, open: 0, difference: 0 };
  for (const source of books.sources) {
    all.received += source.received;
    all.accepted += source.accepted;
    all.refused += sum(source.refused);
    all.open += source.open;
    all.difference += Math.abs(source.difference);
  }
  return {
    name: "Requests",
    left: [["received", all.received]],
    right: [
      ["accepted", all.accepted],
      ["refused", all.refused],
      ["open", all.open],
    ],
    difference: all.difference,
  };
}

/** A sink's items: accepted = delivered + queued + dropped (+ passed over). */
export function items(sink: SinkBook): Equation {
  const right: [string, number][] = [
    ["delivered", sink.delivered],
    ["queued", sink.queued],
    ["dropped", sum(sink.dropped)],
  ];
  if (sink.passed > 0) right.push(["passed over", sink.passed]);
  return { name: sink.name, left: [["accepted", sink.accepted]], right, difference: sink.difference };
}
