import assert from "node:assert/strict";
import { test } from "node:test";
import { listenAddresses, reachable } from "./configuration";

test("addresses are found in the effective configuration", () => {
  const found = listenAddresses('memory: 64MiB\nlisten:\n  http: "0.0.0.0:4318" # every protocol\n  grpc: 127.0.0.1:4317\nother:\n  http: 1.2.3.4:5\n');
  assert.deepEqual([...found], [["http", "0.0.0.0:4318"], ["grpc", "127.0.0.1:4317"]]);
});

test("an address that stands for all becomes the page's host", () => {
  assert.equal(reachable("0.0.0.0:4318", "gateway.example"), "gateway.example:4318");
  assert.equal(reachable("[::]:4318", "gateway.example"), "gateway.example:4318");
  assert.equal(reachable("127.0.0.1:4318", "gateway.example"), "127.0.0.1:4318");
});
