import assert from "node:assert/strict";
import { test } from "node:test";
import { listeners, reachable } from "./configuration";

test("addresses are found in the effective configuration", () => {
  const found = listeners('memory: 64MiB\nlisten:\n  http: "0.0.0.0:4318" # every protocol\n  grpc: 127.0.0.1:4317\nother:\n  http: 1.2.3.4:5\n');
  assert.deepEqual([...found], [["http", { address: "0.0.0.0:4318", tls: false }], ["grpc", { address: "127.0.0.1:4317", tls: false }]]);
});

test("an address has TLS with a certificate of its own, or with that of all", () => {
  const tls = (text: string) => [...listeners(text)].filter(([, listener]) => listener.tls).map(([name]) => name);
  const addresses = "listen:\n  http: 127.0.0.1:4318\n  grpc: 127.0.0.1:4317\n";
  assert.deepEqual(tls(`${addresses}  tls:\n    cert_file: /etc/a.pem\n    listeners: [http, grpc, elasticsearch]\n`), ["http", "grpc"]);
  assert.deepEqual(tls(`${addresses}  tls:\n    cert_file: /etc/a.pem\n    listeners: [elasticsearch]\n    grpc:\n      cert_file: /etc/b.pem\n`), ["grpc"]);
  assert.deepEqual(tls(`${addresses}  tls:\n    listeners: [http, grpc]\n    http:\n    grpc:\nsyslog:\n  tls:\n    cert_file: /etc/c.pem\n`), []);
});

test("an address that stands for all becomes the page's host", () => {
  assert.equal(reachable("0.0.0.0:4318", "gateway.example"), "gateway.example:4318");
  assert.equal(reachable("[::]:4318", "gateway.example"), "gateway.example:4318");
  assert.equal(reachable("127.0.0.1:4318", "gateway.example"), "127.0.0.1:4318");
});
