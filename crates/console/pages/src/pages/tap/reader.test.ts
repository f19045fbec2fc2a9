import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_FILTER, readAnswer, tapQuery } from "./reader";
import { summaryOf } from "./summary";

test("a filter becomes a query", () => {
  assert.equal(tapQuery(NO_FILTER, "x"), "id=x&wait=1s&source=*");
  const query = new URLSearchParams(tapQuery({ ...NO_FILTER, point: "sink:a:b", signal: "logs", contains: "50 % & more", every: "10" }, "x"));
  assert.deepEqual([query.get("sink"), query.get("signal"), query.get("contains"), query.get("every")], ["a:b", "logs", "50 % & more", "10"]);
});

test("an answer has items, and what was missed", () => {
  const { items, missed } = readAnswer('{"signal":"logs"}\nnot json\n\n{"missed_records":3,"lines_without_room":0}\n');
  assert.deepEqual([items.map(({ item }) => item["signal"]), missed], [["logs"], 3]);
});

test("large integers are shown as they were sent", () => {
  const { items } = readAnswer('{"signal":"metrics","value":9007199254740993,"attributes":{"id":18446744073709551615}}\n');
  assert.equal(summaryOf(items[0]?.item ?? {}).detail, "9007199254740993 · id=18446744073709551615");
});

test("an item is summed up in a line", () => {
  const span = summaryOf({ signal: "traces", time: "2027-01-15T08:00:00Z", name: "GET /", service: "shop", duration_ms: 12.5, status: "error", attributes: { a: 1, b: { c: 2 } } });
  assert.deepEqual([span.title, span.service, span.detail, span.bad], ["GET /", "shop", '13 ms · a=1 b={"c":2}', true]);
  assert.deepEqual(summaryOf({}), { time: undefined, signal: "", service: "", title: "", detail: "", bad: false });
});
