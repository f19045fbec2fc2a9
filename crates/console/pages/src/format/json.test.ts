import assert from "node:assert/strict";
import { test } from "node:test";
import { indented, parseExactly } from "./json";

test("integers that a number cannot hold stay as they are written", () => {
  assert.deepEqual(parseExactly('{"a":9007199254740993,"b":[-9007199254740993,9007199254740991,1.5e3],"c":"9007199254740993 : \\"1\\""}'), {
    a: "9007199254740993",
    b: ["-9007199254740993", 9007199254740991, 1500],
    c: '9007199254740993 : "1"',
  });
  assert.throws(() => parseExactly("{"));
});

test("a text is indented as it would be by JSON, with its values as they are", () => {
  for (const value of [{}, [], 1, "a", { a: 1, b: [1, { c: null }, []], d: {}, e: 'x: {"y"}, \\', f: [true, [2, -3.5]] }]) {
    assert.equal(indented(JSON.stringify(value)), JSON.stringify(value, null, 2));
  }
  assert.equal(indented('{"a":9007199254740993,"b":1e400}'), '{\n  "a": 9007199254740993,\n  "b": 1e400\n}');
});
