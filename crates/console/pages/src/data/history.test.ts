import assert from "node:assert/strict";
import { test } from "node:test";
import { History, STEPS, type Levels } from "./history";

const LEVELS: Levels = { journal_bytes: 1, resident: 2, payload: 3 };
const AT = Date.parse("2027-01-15T08:00:00Z");

const last = <T>(values: readonly T[], back = 1): T | undefined => values[values.length - back];

test("frames add up to steps of five seconds", () => {
  const history = new History();
  for (let second = 1; second <= 12; second++) history.add({ at: AT + second * 1_000, seconds: 1, grown: new Map([["in", 50]]) }, LEVELS);
  const { times, series } = history.rates(["in"], AT + 12_000);
  assert.equal(times.length, STEPS);
  assert.equal(last(times), (AT + 10_000) / 1_000, "the step under way is not shown");
  assert.deepEqual([last(series[0] ?? []), last(series[0] ?? [], 2), last(series[0] ?? [], 3)], [50, 50, null]);
});

test("what grew over several steps is shared out among them", () => {
  const history = new History();
  history.add({ at: AT + 10_000, seconds: 10, grown: new Map([["in", 100]]) }, LEVELS);
  const { series } = history.rates(["in"], AT + 10_000);
  assert.deepEqual(series[0]?.slice(-2), [10, 10]);
});

test("the gateway's past fills what the page did not see, and only that", () => {
  const history = new History();
  for (let second = 1; second <= 5; second++) history.add({ at: AT + second * 1_000, seconds: 1, grown: new Map([["in", 7], ["sink:a:out", 3]]) }, LEVELS);
  const point = (received: number) => ({ received, delivered: 10, refused: { memory: 5, disk: 5 }, journal_bytes: 9, resident: 8, payload: 7 });
  history.merge({ step_seconds: 5, at: "2027-01-15T08:00:05Z", points: [point(500), point(1_000)] });
  const { series } = history.rates(["in", "refused", "reason:disk", "sink:a:out"], AT + 5_000);
  assert.deepEqual(series[0]?.slice(-2), [100, 7]);
  assert.deepEqual(series[1]?.slice(-2), [2, 0]);
  assert.deepEqual(series[2]?.slice(-2), [1, 0]);
  assert.deepEqual(series[3]?.slice(-2), [null, 3], "the past of a sink is not told, and not zero");
  assert.deepEqual(history.levels("resident", AT + 5_000).series[0]?.slice(-2), [8, 2]);
});

test("a past that makes no sense is left alone", () => {
  const history = new History();
  history.merge({ step_seconds: 5, at: "yesterday", points: [] });
  history.merge({ step_seconds: 0, at: "2027-01-15T08:00:05Z", points: [] });
  assert.ok(history.rates(["in"], AT).series[0]?.every((value) => value === null));
});

test("what was seen before the gateway's clock was set back is forgotten", () => {
  const history = new History();
  const grown = (count: number) => new Map([["in", count]]);
  for (let second = 1; second <= 60; second++) history.add({ at: AT + second * 1_000, seconds: 1, grown: grown(50) }, LEVELS);
  for (let second = 21; second <= 35; second++) history.add({ at: AT + second * 1_000, seconds: 1, grown: grown(10) }, LEVELS);
  const { times, series } = history.rates(["in"], AT + 60_000);
  const at = (second: number) => series[0]?.[times.indexOf((AT + second * 1_000) / 1_000)];
  assert.deepEqual([at(20), at(30), at(35), at(40), at(60)], [50, 10, 10, null, null]);
});

test("resident memory that is not known is a gap", () => {
  const history = new History();
  const point = { received: 0, delivered: 0, refused: {}, journal_bytes: 9, resident: null, payload: 7 };
  history.merge({ step_seconds: 5, at: "2027-01-15T08:00:05Z", points: [point] });
  for (let second = 6; second <= 10; second++) history.add({ at: AT + second * 1_000, seconds: 1, grown: new Map() }, { ...LEVELS, resident: null });
  assert.deepEqual(history.levels("resident", AT + 10_000).series[0]?.slice(-2), [null, null]);
  assert.deepEqual(history.levels("payload", AT + 10_000).series[0]?.slice(-2), [7, 3]);
});
