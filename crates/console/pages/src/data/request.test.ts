import assert from "node:assert/strict";
import { test } from "node:test";
import { wordsOf } from "./request";

test("a refusal says its first line, or its error, and not too much of it", () => {
  assert.equal(wordsOf("try again\nlater\n"), "try again");
  assert.equal(wordsOf('{"error":"there is no agent"}\n'), "there is no agent");
  assert.equal(wordsOf(JSON.stringify({ error: "x".repeat(1_000) })), "x".repeat(300));
  assert.equal(wordsOf('{"errors":[]}'), '{"errors":[]}');
  assert.equal(wordsOf("{broken"), "{broken");
});
