import assert from "node:assert/strict";
import { test } from "node:test";
import { link, parseRoute } from "./router";

test("a link leads to what it was made of", () => {
  const name = "a/b c?d#e%20ü";
  const route = parseRoute(link("sinks", name, { q: "x y&z" }));
  assert.deepEqual([route.page, route.name, route.query.get("q")], ["sinks", name, "x y&z"]);
});

test("no path is the overview, and a broken one is not an error", () => {
  assert.equal(parseRoute("").page, "overview");
  assert.equal(parseRoute("#/").page, "overview");
  assert.deepEqual([parseRoute("#/sinks/%E0%A4%A").page, parseRoute("#/sinks/%E0%A4%A").name], ["sinks", "%E0%A4%A"]);
});
