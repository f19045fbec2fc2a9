import assert from "node:assert/strict";
import { test } from "node:test";
import { componentsOf, leavesOf } from "./agents";

test("components are read whatever an agent says", () => {
  const unit = { id: "log-1", type: "input", status: "FAILED", message: "no such file" };
  assert.deepEqual(componentsOf([{ id: "log", status: "DEGRADED", message: "1 of 2", units: [unit, 5, null] }], 10), [
    { id: "log", status: "degraded", message: "1 of 2" },
    { id: "log › log-1", status: "failed", message: "no such file" },
  ]);
  for (const strange of [undefined, null, 7, "x", {}, [[]]]) assert.deepEqual(componentsOf(strange, 10), []);
  assert.deepEqual(componentsOf([{ id: 7, type: "log", status: null }], 10), [{ id: "log", status: "", message: "" }]);
  assert.equal(componentsOf(Array.from({ length: 1_000 }, () => ({ units: [unit] })), 15).length, 15);
});

test("leaves have the names that lead to them, and are bounded in number and depth", () => {
  assert.deepEqual(leavesOf({ host: { hostname: "h", ip: ["::1"] }, empty: {}, none: null }, 10), { "host.hostname": "h", "host.ip": ["::1"], empty: {}, none: null });
  assert.deepEqual(Object.keys(leavesOf({ a: 1, b: { c: 2, d: 3 } }, 2)), ["a", "b.c"]);
  assert.deepEqual(leavesOf("text", 10), {});
  const deep = JSON.parse(`${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`) as unknown;
  assert.deepEqual(Object.values(leavesOf(deep, 10)), ["…"]);
  assert.deepEqual(leavesOf({ list: [deep, [deep], 1] }, 10), { list: ["…", "…", 1] });
});
