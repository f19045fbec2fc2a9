import assert from "node:assert/strict";
import { test } from "node:test";
import { readFrame } from "./frame";

const STATUS = { state: "flowing", reason: "", memory: { declared: [], payload: {} }, journal: {}, sinks: [], books: { sources: [], sinks: [] } };

test("a status is read", () => {
  const frame = readFrame(JSON.stringify(STATUS));
  assert.equal(frame.kind, "status");
});

test("a frame that is too long says so", () => {
  assert.deepEqual(readFrame('{"too_long":true}'), { kind: "too_long" });
});

test("a frame of another version says of which, also when it cannot be read", () => {
  assert.deepEqual(readFrame('{"version":"2.0.0","commit":"1a2b"}'), { kind: "unreadable", version: "2.0.0 (1a2b)" });
});

test("what is no status is unreadable", () => {
  for (const text of ["", "null", "[]", "17", "{}", "{", '"status"', JSON.stringify({ ...STATUS, sinks: {} }), JSON.stringify({ ...STATUS, books: null }), JSON.stringify({ ...STATUS, memory: {} })]) {
    assert.deepEqual(readFrame(text), { kind: "unreadable" }, text);
  }
});
