import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes } from "./bytes";
import { compact, count, percent, plural } from "./count";
import { ago, duration } from "./duration";
import { cut, harmless } from "./text";

test("bytes are in binary units", () => {
  assert.deepEqual([0, 512, 1024, 1536, 13_946_060, 2 ** 30 * 20, 104_857_600].map(bytes), ["0 B", "512 B", "1 KiB", "1.5 KiB", "13.3 MiB", "20 GiB", "100 MiB"]);
});

test("counts have their thousands apart, as the server writes them", () => {
  assert.deepEqual([0, 12, 123, 1234, 123_456, 1_234_567].map(count), ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
  assert.deepEqual([plural(1, "record"), plural(1234, "record")], ["1 record", "1,234 records"]);
});

test("rates are short", () => {
  assert.deepEqual([0, 0.04, 0.4, 1, 9.94, 42.4, 999, 999.6, 1_250, 12_340, 999_900, 1_234_567, 2e9].map(compact), ["0", "0", "0.4", "1", "9.9", "42", "999", "1k", "1.25k", "12.3k", "1M", "1.23M", "2G"]);
});

test("parts are in percent", () => {
  assert.deepEqual([percent(0, 100), percent(1, 10_000), percent(1, 3), percent(4.2, 100), percent(1, 0), percent(0, 0)], ["0", "< 0.1", "33", "4.2", "100", "0"]);
});

test("spans read as people say them, as the server writes them", () => {
  assert.deepEqual([0, 0.00045, 0.0018, 0.25, 1.5, 42.9, 250, 3 * 3600, 26 * 3600].map(duration), ["0 s", "450 µs", "1.8 ms", "250 ms", "1.5 s", "42 s", "4 min 10 s", "3 h", "1 d 2 h"]);
});

test("moments are seen from now", () => {
  const now = 1e12;
  assert.deepEqual([0, -199, -90_000, 12, 0.012, -3].map((seconds) => ago(now + seconds * 1000, now)), ["just now", "3 min ago", "1 d ago", "in 12 s", "in 1 s", "3 s ago"]);
});

test("texts of strangers steer nothing", () => {
  assert.equal(harmless("a\u202egnp.exe\u0000\u001b[31m\nb\tc"), "a\ufffdgnp.exe\ufffd\ufffd[31m\nb\tc");
  assert.equal(harmless("p\u200bay\u200cp\u200dal\u2060\ufeff\u00ad\u061c"), "p\ufffday\ufffdp\ufffdal\ufffd\ufffd\ufffd\ufffd");
  assert.equal(cut("abcdef", 4), "abc…");
  assert.equal(cut("abcd", 4), "abcd");
});
