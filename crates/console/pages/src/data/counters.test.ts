import assert from "node:assert/strict";
import { test } from "node:test";
import { countersOf, growth, reasonKey, sourceKey } from "./counters";
import type { SourceBook, Status } from "./status";

const source = (more: Partial<SourceBook>): SourceBook => ({ name: "otlp", received: 0, accepted: 0, refused: {}, open: 0, items: {}, items_refused: {}, bytes: 0, forwarded: 0, forwarded_open: 0, forwarded_fates: {}, difference: 0, ...more });
const frame = (...sources: SourceBook[]): Status => ({ sinks: [], books: { sources } }) as unknown as Status;
const grown = (before: SourceBook, after: SourceBook) => growth(countersOf(frame(before)), countersOf(frame(after)));

test("forwarded items came in, as the gateway's history has it", () => {
  const step = grown(source({ items: { logs: 5 }, forwarded: 100 }), source({ items: { logs: 7, traces: 1 }, forwarded: 140 }));
  assert.deepEqual([step.get("in"), step.get(sourceKey("otlp", "items"))], [43, 43]);
});

test("refused requests and refused items are counted apart", () => {
  const step = grown(source({ refused: { memory: 1 } }), source({ refused: { memory: 3 }, items_refused: { malformed: 500 } }));
  assert.deepEqual([step.get("refused"), step.get("items_refused")], [2, 500]);
  assert.deepEqual([step.get(sourceKey("otlp", "refused")), step.get(sourceKey("otlp", "items_refused"))], [2, 500]);
  assert.deepEqual([step.get(reasonKey("memory")), step.get(reasonKey("malformed"))], [2, 0], "reasons are those of requests");
});

test("the first refusal for a reason counts", () => {
  assert.equal(grown(source({}), source({ refused: { malformed: 1 } })).get(reasonKey("malformed")), 1);
});
