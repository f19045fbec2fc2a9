import assert from "node:assert/strict";
import { test } from "node:test";
import { refusalKeys, type RefusedRequest } from "./refusals";

const refused = (second: number, reason: string): RefusedRequest => ({ at: `2027-01-15T08:00:0${second}Z`, source: "otlp", reason, meaning: "", peer: "10.0.0.1:9", tenant: null, bytes: null, what: null, detail: null });

test("a refused request keeps its key when newer ones come, equal ones too", () => {
  const old = [refused(2, "memory"), refused(1, "memory"), refused(1, "memory"), refused(1, "disk")];
  const before = refusalKeys(old);
  assert.equal(new Set(before.values()).size, 4);
  const after = refusalKeys([refused(3, "memory"), refused(2, "memory"), ...old]);
  for (const request of old) assert.equal(after.get(request), before.get(request));
});
