import assert from "node:assert/strict";
import { test } from "node:test";
import type { Sink, SourceBook, Status } from "../data/status";
import { flowGraph, JOURNAL, withoutPipelines } from "./graph";
import { layOut, strokeOf } from "./layout";

const sink = (name: string, more: Partial<Sink> = {}): Sink => ({
  name,
  kind: "otlp",
  target: "http://peer",
  lag: { items: 0, bytes: 0, age_seconds: null },
  usual_lag_seconds: 1,
  cursor: 1,
  in_flight: 0,
  requests: 1,
  last_success: null,
  failures: 0,
  bytes: 0,
  resent: 0,
  restarts: 0,
  broken: false,
  items_per_second: null,
  last_error: null,
  waiting: [],
  pipeline: [],
  retry_at: null,
  delivered: 10,
  dropped: {},
  ...more,
});

const source = (name: string, received: number): SourceBook => ({
  name,
  received,
  accepted: received,
  refused: {},
  open: 0,
  items: received > 0 ? { logs: received } : {},
  items_refused: {},
  bytes: 0,
  forwarded: 0,
  forwarded_open: 0,
  forwarded_fates: {},
  difference: 0,
});

const statusOf = (sources: SourceBook[], sinks: Sink[], more: Partial<Status> = {}): Status => ({
  state: "flowing",
  reason: "",
  version: "0",
  at: null,
  uptime_seconds: 1,
  stopping: false,
  memory: { limit: 1, origin: "", resident: null, heap_live: 0, declared: [], payload: { total: 1, idle: 0, shares: [] }, connections_open: 0, connections_limit: 1 },
  journal: { dir: "", durability: "fsync", bytes: 5, quota: 10, segments: 1, oldest_age_seconds: null, head: 1, items_total: 1, items_per_second: 10, full_in_seconds: null, damage: { records: 0, bytes: 0, quarantined_segments: 0 }, syncs: { count: 0, mean_seconds: 0 }, trouble: null },
  sinks,
  left_behind: [],
  books: { difference: 0, sources, journal: { accepted: 0, handed_over: 0, appended: 0, difference: 0 }, sinks: [] },
  ...more,
});

const STEP = { pipeline: "p", step: "s", items: 1, filtered: 0, sampled_out: 0, failures: 0 };
const rates = (): number => 100;

test("sources lead to the journal, and it leads to sinks", () => {
  const graph = flowGraph(statusOf([source("otlp", 5)], [sink("lake")]), rates, 0);
  assert.deepEqual(graph.edges.map(({ from, to }) => [from, to]), [["source:otlp", JOURNAL], [JOURNAL, "sink:lake"]]);
});

test("pipelines stand between", () => {
  const status = statusOf([source("otlp", 5)], [sink("lake", { pipeline: [STEP] })], { source_pipelines: [{ source: "otlp", steps: [STEP] }] });
  const graph = flowGraph(status, rates, 0);
  assert.deepEqual(graph.edges.map(({ from, to }) => [from, to]), [["source:otlp", "pipeline:otlp"], ["pipeline:otlp", JOURNAL], [JOURNAL, "pipeline:sink:lake"], ["pipeline:sink:lake", "sink:lake"]]);
});

test("without pipelines, lines lead past them and keep what they say", () => {
  const late = sink("lake", { pipeline: [STEP], lag: { items: 5, bytes: 1, age_seconds: 90 } });
  const graph = withoutPipelines(flowGraph(statusOf([source("otlp", 5)], [late], { source_pipelines: [{ source: "otlp", steps: [STEP] }] }), rates, 0));
  assert.deepEqual(graph.edges.map(({ from, to, label, note }) => [from, to, label, note]), [["source:otlp", JOURNAL, "100/s", ""], [JOURNAL, "sink:lake", "100/s", "1 min behind"]]);
  assert.deepEqual(graph.nodes.map((node) => node.layer), ["source", "journal", "sink"]);
});

test("many idle sources are one node, and many calm sinks too, but none that is in trouble", () => {
  const sinks = Array.from({ length: 64 }, (_, index) => sink(`s${index}`, index === 63 ? { retry_at: "2027-01-15T08:00:00Z", last_error: { message: "refused", at: null } } : {}));
  const graph = flowGraph(statusOf([source("otlp", 1), source("a", 0), source("b", 0), source("c", 0)], sinks), rates, 0);
  assert.deepEqual(graph.nodes.filter((node) => node.layer === "source").map((node) => node.id), ["source:otlp", "idle"]);
  const shown = graph.nodes.filter((node) => node.layer === "sink");
  assert.ok(shown.length <= 17, `${shown.length}`);
  assert.equal(shown.find((node) => node.id === "sink:s63")?.tone, "bad");
  assert.equal(shown.find((node) => node.id === "more")?.title, "48 more sinks");
});

test("a source that refused all that came is a node of its own", () => {
  const refused = { ...source("bad", 0), items_refused: { malformed: 4 } };
  const graph = flowGraph(statusOf([refused, source("a", 0), source("b", 0), source("c", 0)], []), () => 0, 0);
  assert.deepEqual(graph.nodes.filter((node) => node.layer === "source").map((node) => [node.id, node.text]), [["source:bad", "4 items refused"], ["idle", "a, b, c"]]);
});

test("trouble colours nodes and edges", () => {
  const late = sink("slow", { lag: { items: 5, bytes: 1, age_seconds: 90 }, items_per_second: 5 });
  const graph = flowGraph(statusOf([source("otlp", 1)], [late]), rates, 0);
  const edge = graph.edges.at(-1);
  assert.deepEqual([edge?.tone, edge?.note], ["warn", "1 min behind"]);
});

for (const width of [560, 800, 1100, 1600]) {
  test(`nodes lie within ${width} pixels and on no other`, () => {
    const status = statusOf([source("otlp", 1), source("http", 3)], Array.from({ length: 9 }, (_, index) => sink(`s${index}`, index % 2 ? { pipeline: [STEP] } : {})), { source_pipelines: [{ source: "otlp", steps: [STEP] }] });
    const graph = flowGraph(status, rates, 0);
    const { nodes, edges, height } = layOut(graph, width);
    assert.equal(nodes.length, graph.nodes.length);
    assert.equal(edges.length, graph.edges.length);
    for (const a of nodes) {
      assert.ok(a.x >= 0 && a.x + a.width <= width + 0.5 && a.y >= 0 && a.y + a.height <= height, a.node.id);
      for (const b of nodes) {
        if (a === b) continue;
        const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        assert.ok(apart, `${a.node.id} lies on ${b.node.id}`);
      }
    }
    for (const edge of edges) assert.ok(!edge.path.includes("NaN"), edge.path);
  });
}

test("a line grows with the rate, and not without end", () => {
  const widths = [0, 1, 10, 1e3, 1e6, 1e12].map(strokeOf);
  assert.deepEqual([...widths].sort((a, b) => a - b), widths);
  assert.ok((widths.at(-1) ?? 99) <= 14);
});
