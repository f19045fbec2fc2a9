import assert from "node:assert/strict";
import { test } from "node:test";
import { share } from "./share";

const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

test("an equal frame is the old one", () => {
  const old = { a: 1, list: [{ b: null }, "x"], deep: { c: [1, 2] } };
  assert.equal(share(old, copy(old)), old);
});

test("only what changed is new", () => {
  const old = { sinks: [{ name: "a", out: 1 }, { name: "b", out: 1 }], memory: { used: 5 } };
  const next = copy(old);
  (next.sinks[1] as { out: number }).out = 2;
  const shared = share(old, next);
  assert.notEqual(shared, old);
  assert.equal(shared.memory, old.memory);
  assert.equal(shared.sinks[0], old.sinks[0]);
  assert.deepEqual(shared.sinks[1], { name: "b", out: 2 });
});

test("keys and entries that go or come are changes", () => {
  const old: { a?: number; list: number[] } = { a: 1, list: [1, 2] };
  assert.deepEqual(share(old, { list: [1, 2] }), { list: [1, 2] });
  assert.deepEqual(share(old, { a: 1, list: [1] }), { a: 1, list: [1] });
  assert.deepEqual(share<unknown>([1], { 0: 1 }), { 0: 1 });
  assert.deepEqual(share<unknown>(null, { a: 1 }), { a: 1 });
  assert.equal(share<unknown>({ a: 1 }, null), null);
});
