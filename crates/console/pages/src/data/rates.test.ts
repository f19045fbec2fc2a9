import assert from "node:assert/strict";
import { test } from "node:test";
import { sinkKey, sourceKey } from "./counters";
import { Rates } from "./rates";

const ITEMS = sourceKey("otlp", "items");
const counters = (value: number): Map<string, number> => new Map([[ITEMS, value]]);
const sinks = (counts: Readonly<Record<string, number>>): Map<string, number> => new Map(Object.entries(counts).map(([name, count]) => [sinkKey(name, "out"), count]));

test("a rate is the difference over the time between frames", () => {
  const rates = new Rates();
  assert.equal(rates.add(0, 1, counters(100)), undefined);
  assert.equal(rates.of(ITEMS), undefined, "one frame says nothing");
  const step = rates.add(2_000, 3, counters(300));
  assert.deepEqual([step?.seconds, step?.grown.get(ITEMS), step?.grown.get("in")], [2, 200, 200]);
  assert.equal(rates.of(ITEMS), 100);
  assert.equal(rates.of("nothing"), undefined);
});

test("a rate covers the last seconds alone", () => {
  const rates = new Rates();
  for (let second = 0; second <= 60; second++) rates.add(second * 1_000, second, counters(second < 30 ? 0 : (second - 30) * 10));
  assert.equal(rates.of(ITEMS), 10);
});

test("another process begins anew", () => {
  const rates = new Rates();
  rates.add(0, 100, counters(1_000));
  rates.add(1_000, 101, counters(2_000));
  assert.equal(rates.add(2_000, 1, counters(5_000)), undefined);
  assert.equal(rates.of(ITEMS), undefined);
  rates.add(3_000, 2, counters(5_020));
  assert.equal(rates.of(ITEMS), 20);
});

test("the rate after a gap is not the average of the gap", () => {
  const rates = new Rates();
  rates.add(0, 0, counters(0));
  rates.add(1_000, 1, counters(10));
  assert.equal(rates.add(17_000, 17, counters(100_000)), undefined);
  assert.equal(rates.of(ITEMS), undefined);
  rates.add(18_000, 18, counters(100_010));
  assert.equal(rates.of(ITEMS), 10);
});

test("frames go on when the gateway's clock is set back", () => {
  const rates = new Rates();
  rates.add(10_000, 10, counters(100));
  assert.equal(rates.add(5_000, 11, counters(200)), undefined);
  rates.add(6_000, 12, counters(230));
  assert.equal(rates.of(ITEMS), 30);
});

test("the same moment twice counts once", () => {
  const rates = new Rates();
  rates.add(0, 0, counters(0));
  rates.add(1_000, 1, counters(10));
  assert.equal(rates.add(1_000, 1, counters(10)), undefined);
  assert.equal(rates.of(ITEMS), 10);
});

test("a counter that appears begins at its present value", () => {
  const rates = new Rates();
  rates.add(0, 0, sinks({ lake: 0 }));
  const step = rates.add(1_000, 1, sinks({ lake: 1, new: 7_000_000 }));
  assert.equal(rates.of(sinkKey("new", "out")), undefined);
  assert.deepEqual([step?.grown.get("out"), rates.of("out")], [1, 1]);
  rates.add(2_000, 2, sinks({ lake: 2, new: 7_000_005 }));
  assert.deepEqual([rates.of(sinkKey("new", "out")), rates.of("out")], [5, 3.5]);
});

test("a reload that empties the sinks for a while gives no false rate", () => {
  const rates = new Rates();
  const all = [sinks({ a: 1_000, b: 500 }), sinks({}), sinks({}), sinks({ a: 1_000, b: 500 }), sinks({ a: 1_010, b: 490 })];
  const out = all.map((counters, second) => rates.add(second * 1_000, second, counters)?.grown.get("out"));
  assert.deepEqual(out, [undefined, 0, 0, 0, 10], "a counter that fell begins anew, and the others go on");
});
