import assert from "node:assert/strict";
import { test } from "node:test";
import { rangeOf } from "./range";
import { nanoseconds, severityName, type LogRow, type SpanRow } from "./rows";
import { nanosecondsOf, termsOf, termText } from "./terms";
import { unfolded, waterfall } from "./waterfall";

const span = (id: string, parent: string | null, start: number, duration: number, status = 0): SpanRow => ({
  time: `2027-01-15T08:00:00.${String(start).padStart(9, "0")}Z`,
  service: `service-${id}`,
  trace_id: "t",
  span_id: id,
  parent_span_id: parent,
  events: [],
  name: id,
  duration_ns: duration,
  kind: 0,
  status,
  status_message: null,
  scope: null,
  attributes: {},
  resource: {},
  from: "lake",
  cut: false,
});

const log = (span: string | null): LogRow => ({ time: "2027-01-15T08:00:00Z", service: "", trace_id: "t", span_id: span, scope: null, attributes: {}, resource: {}, from: "lake", cut: false, severity: 9, severity_text: null, event_name: null, body: "" });

test("parents come before their children, children by their beginning", () => {
  const { rows, duration } = waterfall([span("c", "a", 300, 100), span("a", null, 100, 1_000), span("b", "a", 200, 50), span("d", "b", 210, 20)], []);
  assert.deepEqual(rows.map((row) => [row.span.span_id, row.depth, row.below]), [["a", 0, 3], ["b", 1, 1], ["d", 2, 0], ["c", 1, 0]]);
  assert.equal(duration, 1_000);
  assert.deepEqual([rows[3]?.start, rows[3]?.length], [0.2, 0.1]);
});

test("no span is lost: not one whose parent is missing, not those of a circle, nor one that is its own parent", () => {
  const spans = [span("a", "gone", 0, 10), span("b", "c", 1, 10), span("c", "b", 2, 10), span("d", "d", 3, 10)];
  const { rows } = waterfall(spans, []);
  assert.deepEqual(new Set(rows.map((row) => row.span.span_id)), new Set(["a", "b", "c", "d"]));
});

test("log records are with their spans, and the others beside", () => {
  const { rows, loose, failed } = waterfall([span("a", null, 0, 10, 2)], [log("a"), log("x"), log(null)]);
  assert.deepEqual([rows[0]?.logs.length, loose.length, failed], [1, 2, 1]);
});

test("an empty trace has no rows", () => {
  assert.deepEqual(waterfall([], []).rows, []);
});

test("what is folded hides what is below it alone", () => {
  const { rows } = waterfall([span("a", null, 0, 10), span("b", "a", 1, 5), span("c", "b", 2, 1), span("d", "a", 7, 1)], []);
  assert.deepEqual(unfolded(rows, new Set(["b"])).map((row) => row.span.span_id), ["a", "b", "d"]);
  assert.deepEqual(unfolded(rows, new Set(["a", "b"])).map((row) => row.span.span_id), ["a"]);
});

test("times are exact to the nanosecond, over midnight too", () => {
  assert.equal(nanoseconds("2027-01-15T08:00:00.000000002Z") - nanoseconds("2027-01-15T08:00:00.000000001Z"), 1);
  assert.equal(nanoseconds("2027-01-16T00:00:00Z") - nanoseconds("2027-01-15T23:59:59.5Z"), 5e8);
});

test("severities have the names of their numbers", () => {
  assert.deepEqual([0, 1, 4, 5, 9, 12, 13, 17, 21, 24, 99, -3].map(severityName), ["unset", "trace", "trace", "debug", "info", "info", "warn", "error", "fatal", "fatal", "fatal", "unset"]);
});

test("conditions are read as they are written", () => {
  assert.deepEqual(termsOf('http.route=/cart status=500 user="a \\"b\\" c" nonsense empty='), { "http.route": "/cart", status: "500", user: 'a "b" c', empty: "" });
  for (const value of ["plain", "with space", 'quo"te', "back\\slash and space", ""]) assert.deepEqual(termsOf(termText("k", value)), { k: value });
});

test("lengths of time are read as people write them", () => {
  assert.deepEqual(["250ms", "1.5s", "2m", "7", "10 us", "fast", ""].map(nanosecondsOf), [250e6, 1.5e9, 120e9, 7e6, 10e3, undefined, undefined]);
});

test("a time is the last so long, or fixed", () => {
  const now = Date.parse("2027-01-15T08:00:00Z");
  assert.deepEqual(rangeOf(new URLSearchParams("last=15m"), now), { from: now - 900_000, to: now });
  assert.deepEqual(rangeOf(new URLSearchParams("from=2027-01-15T07:00:00Z&to=2027-01-15T07:30:00Z"), now), { from: now - 3_600_000, to: now - 1_800_000 });
  assert.deepEqual(rangeOf(new URLSearchParams("from=x&to=y"), now), { from: now - 3_600_000, to: now });
});
