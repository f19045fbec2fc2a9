import assert from "node:assert/strict";
import { test } from "node:test";
import { Rates } from "./rates";

const counters = (value: number): Map<string, number> => new Map([["in", value]]);

test("a rate is the difference over the time between frames", () => {
  const rates = new Rates();
  assert.equal(rates.add(0, counters(100)), undefined);
  assert.equal(rates.of("in"), undefined, "one frame says nothing");
  const step = rates.add(2_000, counters(300));
  assert.deepEqual([step?.seconds, step?.grown.get("in")], [2, 200]);
  assert.equal(rates.of("in"), 100);
});

test("a rate covers the last seconds alone", () => {
  const rates = new Rates();
  for (let second = 0; second <= 60; second++) rates.add(second * 1_000, counters(second < 30 ? 0 : (second - 30) * 10));
  assert.equal(rates.of("in"), 10);
});

test("counters that fall begin anew", () => {
  const rates = new Rates();
  rates.add(0, counters(1_000));
  rates.add(1_000, counters(2_000));
  assert.equal(rates.add(2_000, counters(5)), undefined, "the process started anew");
  assert.equal(rates.of("in"), undefined);
  rates.add(3_000, counters(25));
  assert.equal(rates.of("in"), 20);
});

test("the same moment twice counts once", () => {
  const rates = new Rates();
  rates.add(0, counters(0));
  rates.add(1_000, counters(10));
  assert.equal(rates.add(1_000, counters(10)), undefined);
  assert.equal(rates.of("in"), 10);
});

test("a counter that appears counts from zero, and one that is not there has no rate", () => {
  const rates = new Rates();
  rates.add(0, counters(0));
  rates.add(1_000, new Map([["in", 1], ["sink:new:out", 7]]));
  assert.equal(rates.of("sink:new:out"), 7);
  assert.equal(rates.of("nothing"), undefined);
});
