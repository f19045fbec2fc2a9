import assert from "node:assert/strict";
import { test } from "node:test";
import { placeAfter } from "./moment";
import { binaryCeiling, ceiling } from "./scale";

test("the scale ends at a round number above the highest value", () => {
  assert.deepEqual([null, 0, 1, 90, 250, 52_000].map(ceiling), [1, 1, 1.5, 100, 300, 60_000]);
  for (const value of [1, 5_000, 1e7, 1e12]) {
    const top = binaryCeiling(value);
    assert.ok(top > value && top < value * 3, `${value}: ${top}`);
    assert.equal(top % 2 ** Math.floor(Math.log2(top) - 2), 0);
  }
});

test("keys move the shown moment within the chart", () => {
  const moved = (key: string, shown?: number) => placeAfter(key, shown, 180);
  assert.deepEqual([moved("ArrowLeft"), moved("ArrowLeft", 179), moved("ArrowLeft", 0)], [179, 178, 0]);
  assert.deepEqual([moved("ArrowRight"), moved("ArrowRight", 5), moved("ArrowRight", 179)], [179, 6, 179]);
  assert.deepEqual([moved("Home", 9), moved("End", 9), moved("g", 9), placeAfter("Home", undefined, 0)], [0, 179, undefined, undefined]);
});
