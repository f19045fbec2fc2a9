import assert from "node:assert/strict";
import { test } from "node:test";
import { componentsOf, leavesOf } from "./agents";

test("components are read whatever an agent says", () => {
  const unit = { id: "log-1", type: "input", status: "FAILED", message: "no such file" };
  assert.deepEqual(componentsOf([{ id: "log", status: "DEGRADED", message: "1 of 2", units: [unit, 5, null] }]), [
    { id: "log", status: "degraded", message: "1 of 2", units: [{ id: "log-1", status: "failed", message: "no such file", units: [] }] },
  ]);
  for (const strange of [undefined, null, 7, "x", {}, [[]]]) assert.deepEqual(componentsOf(strange), []);
  assert.deepEqual(componentsOf([{ id: 7, type: "log", status: null }]), [{ id: "log", status: "", message: "", units: [] }]);
});

test("leaves have the names that lead to them, and are bounded", () => {
  assert.deepEqual(leavesOf({ host: { hostname: "h", ip: ["::1"] }, empty: {}, none: null }, 10), { "host.hostname": "h", "host.ip": ["::1"], empty: {}, none: null });
  assert.deepEqual(Object.keys(leavesOf({ a: 1, b: { c: 2, d: 3 } }, 2)), ["a", "b.c"]);
  assert.deepEqual(leavesOf("text", 10), {});
});
