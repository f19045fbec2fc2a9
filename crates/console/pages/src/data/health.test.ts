import assert from "node:assert/strict";
import { test } from "node:test";
import { inFlight, isIdle, mostly, sourceHealth, untilFull } from "./health";
import type { Journal, Sink, SourceBook } from "./status";

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

test("a journal that is full is full now", () => {
  const journal = (more: Partial<Journal>): Journal => ({ dir: "", durability: "fsync", bytes: 5, quota: 1_000, segments: 1, oldest_age_seconds: null, head: 1, items_total: 1, items_per_second: 0, full_in_seconds: null, damage: { records: 0, bytes: 0, quarantined_segments: 0 }, syncs: { count: 0, mean_seconds: 0 }, trouble: null, ...more });
  assert.equal(untilFull(journal({ bytes: 990 })).value, "now");
  assert.equal(untilFull(journal({ trouble: "the quota is used up" })).value, "now");
  assert.equal(untilFull(journal({ items_per_second: null })).value, "–", "nothing is known yet");
  assert.equal(untilFull(journal({})).value, "not at this rate");
  assert.deepEqual(untilFull(journal({ full_in_seconds: 7_200 })), { value: "in 2 h", tone: "warn" });
});

test("requests in flight stand beside their limit, which may have a fraction", () => {
  assert.equal(inFlight({ in_flight: 3, concurrency_limit: 8.9 } as Sink), "3 of 8");
  assert.equal(inFlight({ in_flight: 1_234 } as Sink), "1,234");
});

test("requests are mostly refused for a reason of requests", () => {
  assert.equal(mostly(source({ refused: { disk: 1, memory: 2 }, items_refused: { malformed: 500 } })), "memory");
  assert.equal(mostly(source({ items_refused: { malformed: 500 } })), "malformed");
});
