import assert from "node:assert/strict";
import { test } from "node:test";
import { isIdle, sourceHealth } from "./health";
import type { SourceBook } from "./status";

const NOTHING = { requests: 0, items: 0 };
const source = (more: Partial<SourceBook>): SourceBook => ({ name: "otlp", received: 0, accepted: 0, refused: {}, open: 0, items: {}, items_refused: {}, bytes: 0, forwarded: 0, forwarded_open: 0, forwarded_fates: {}, difference: 0, ...more });

test("a source that only refused items is not idle", () => {
  const refused = source({ items_refused: { malformed: 40 } });
  assert.equal(isIdle(refused), false);
  assert.equal(sourceHealth(refused, NOTHING).sentence, "nothing is refused now; since the start, 40 items");
  assert.equal(sourceHealth(source({}), NOTHING).word, "idle");
});

test("a source that refuses says what, and no reason of the past", () => {
  const refused = source({ received: 9, refused: { memory: 8, malformed: 1 } });
  assert.equal(sourceHealth(refused, { requests: 1, items: 0 }).sentence, "requests are refused now");
  assert.equal(sourceHealth(refused, { requests: 0, items: 1 }).sentence, "items are refused now");
  assert.equal(sourceHealth(refused, NOTHING).sentence, "nothing is refused now; since the start, 9 requests");
});
