// The flow as nodes and edges: sources, their pipelines, the journal, the pipelines of sinks, and sinks.
import { sinkKey, sourceKey, sum } from "../data/counters";
import { fillsSoon, isIdle, refusedSoFar, sinkHealth, sourceHealth, type Tone } from "../data/health";
import type { PipelineStep, Sink, SourceBook, Status } from "../data/status";
import { bytes } from "../format/bytes";
import { compact, count, percent, plural } from "../format/count";
import { coarse, duration } from "../format/duration";
import { words } from "../format/text";
import { link } from "../router";

export type Layer = "source" | "source_pipeline" | "journal" | "sink_pipeline" | "sink";
export const LAYERS: readonly Layer[] = ["source", "source_pipeline", "journal", "sink_pipeline", "sink"];

export interface FlowNode {
  id: string;
  layer: Layer;
  title: string;
  /** Under the title, in short. */
  text: string;
  /** The whole in a sentence, for the list and on hover. */
  sentence: string;
  tone: Tone;
  href: string;
  /** How full it is, from 0 to 1; of the journal alone. */
  level?: number;
}

export interface FlowEdge {
  from: string;
  to: string;
  /** Items a second. */
  rate: number;
  tone: Tone;
  /** On the edge; nothing where nothing flows. */
  label: string;
  /** Under it: what is queued, or fails. */
  note: string;
}

export interface FlowGraph {
  nodes: FlowNode[];
  edges: FlowEdge[];
}

type RateOf = (key: string) => number | undefined;

/** More idle sources than this are one node. */
const MOST_IDLE = 2;
/** More sinks than this, and those that keep up are one node beside the busiest of them. */
const MOST_SINKS = 16;
export const JOURNAL = "journal";

export function flowGraph(status: Status, rateOf: RateOf, now: number): FlowGraph {
  const graph: FlowGraph = { nodes: [], edges: [] };
  addSources(graph, status, rateOf);
  graph.nodes.push(journalNode(status));
  addSinks(graph, status, rateOf, now);
  addDestination(graph, status);
  return graph;
}

/** The same without nodes for pipelines: lines lead past them. */
export function withoutPipelines({ nodes, edges }: FlowGraph): FlowGraph {
  const left = new Set(nodes.filter((node) => node.layer.endsWith("_pipeline")).map((node) => node.id));
  const joined = edges
    .filter((edge) => !left.has(edge.from))
    .map((edge) => {
      const next = left.has(edge.to) ? edges.find((other) => other.from === edge.to) : undefined;
      return next ? { ...edge, to: next.to, label: edge.label || next.label, note: edge.note || next.note } : edge;
    });
  return { nodes: nodes.filter((node) => !left.has(node.id)), edges: joined };
}

function addSources(graph: FlowGraph, status: Status, rateOf: RateOf): void {
  const sources = status.books.sources;
  const idle = sources.filter(isIdle);
  const merged = idle.length > MOST_IDLE ? idle : [];
  for (const source of sources) if (!merged.includes(source)) addSource(graph, status, source, rateOf);
  if (merged.length === 0) return;
  const names = merged.map((source) => source.name).join(", ");
  graph.nodes.push({ id: "idle", layer: "source", title: `${merged.length} idle sources`, text: names, sentence: `nothing was received so far by ${names}`, tone: "idle", href: link("sources") });
  graph.edges.push({ from: "idle", to: JOURNAL, rate: 0, tone: "idle", label: "", note: "" });
}

function addSource(graph: FlowGraph, status: Status, source: SourceBook, rateOf: RateOf): void {
  const rate = rateOf(sourceKey(source.name, "items")) ?? 0;
  const refusing = { requests: rateOf(sourceKey(source.name, "refused")) ?? 0, items: rateOf(sourceKey(source.name, "items_refused")) ?? 0 };
  const health = sourceHealth(source, refusing);
  const id = `source:${source.name}`;
  const text = sourceText(source, refusing);
  graph.nodes.push({ id, layer: "source", title: source.name, text, sentence: `${compact(rate)} items a second; ${health.sentence}`, tone: health.tone, href: link("sources", source.name) });
  const journalled = source.received > 0 && source.forwarded === 0;
  const edge = { rate: source.forwarded > 0 ? 0 : rate, tone: health.tone === "warn" ? ("warn" as const) : rate > 0 ? ("good" as const) : ("idle" as const), label: rate > 0 && journalled ? perSecond(rate) : "", note: "" };
  const pipeline = status.source_pipelines?.find((pipeline) => pipeline.source === source.name);
  if (!pipeline) {
    graph.edges.push({ from: id, to: JOURNAL, ...edge });
    return;
  }
  const node = pipelineNode(`pipeline:${source.name}`, "source_pipeline", pipeline.steps, link("sources", source.name));
  graph.nodes.push(node);
  graph.edges.push({ from: id, to: node.id, ...edge }, { from: node.id, to: JOURNAL, ...edge, label: "" });
}

function sourceText(source: SourceBook, refusing: { requests: number; items: number }): string {
  if (refusing.requests > 0) return `${compact(refusing.requests)}/s refused`;
  if (refusing.items > 0) return `${compact(refusing.items)} items/s refused`;
  if (isIdle(source)) return "nothing received";
  const refused = refusedSoFar(source);
  return refused === "" ? `${compact(sum(source.items) + source.forwarded)} items` : `${refused} refused`;
}

const perSecond = (rate: number): string => `${compact(rate)}/s`;

function pipelineNode(id: string, layer: Layer, steps: PipelineStep[], href: string): FlowNode {
  const names = [...new Set(steps.map((step) => step.pipeline).filter((name) => name !== ""))];
  const failures = steps.reduce((all, step) => all + step.failures, 0);
  const gone = steps.reduce((all, step) => all + step.filtered + step.sampled_out, 0);
  const text = failures > 0 ? `${compact(failures)} failed` : gone > 0 ? `${compact(gone)} dropped` : `${steps.length} ${steps.length === 1 ? "step" : "steps"}`;
  const title = names.length > 0 ? names.join(" + ") : (steps[0]?.step ?? "pipeline");
  return { id, layer, title, text, sentence: `${plural(steps.length, "step")}; ${count(gone)} items dropped, ${count(failures)} failures`, tone: failures > 0 ? "warn" : "good", href };
}

function journalNode(status: Status): FlowNode {
  const { journal } = status;
  const used = `${bytes(journal.bytes)} of ${bytes(journal.quota)}`;
  const filling = fillsSoon(journal);
  const text = journal.trouble !== null ? "accepts nothing" : filling ? `full in ${duration(journal.full_in_seconds ?? 0)}` : `${percent(journal.bytes, journal.quota)} % full`;
  return {
    id: JOURNAL,
    layer: "journal",
    title: "journal",
    text,
    sentence: `${used}${journal.trouble === null ? "" : `; it accepts nothing: ${journal.trouble}`}`,
    tone: journal.trouble !== null ? "bad" : filling ? "warn" : "good",
    href: link("journal"),
    level: journal.bytes / Math.max(1, journal.quota),
  };
}

function addSinks(graph: FlowGraph, status: Status, rateOf: RateOf, now: number): void {
  const arriving = status.journal.items_per_second;
  const all = status.sinks.map((sink) => ({ sink, health: sinkHealth(sink, arriving, now), rate: rateOf(sinkKey(sink.name, "out")) ?? 0 }));
  const calm = all.filter(({ health }) => health.tone === "good" || health.tone === "idle");
  const trouble = all.length - calm.length;
  const keep = Math.max(4, MOST_SINKS - trouble);
  const busiest = [...calm].sort((a, b) => b.rate - a.rate).slice(0, keep);
  const merged = all.length > MOST_SINKS ? calm.filter((one) => !busiest.includes(one)) : [];
  for (const one of all) {
    if (merged.includes(one)) continue;
    addSink(graph, one.sink, one.rate, one.health.tone, one.health.word, one.health.sentence);
  }
  if (merged.length === 0) return;
  const rate = merged.reduce((sum, one) => sum + one.rate, 0);
  graph.nodes.push({ id: "more", layer: "sink", title: `${merged.length} more sinks`, text: "keep up", sentence: `${merged.length} more sinks keep up`, tone: "good", href: link("sinks") });
  graph.edges.push({ from: JOURNAL, to: "more", rate, tone: rate > 0 ? "good" : "idle", label: rate > 0 ? perSecond(rate) : "", note: "" });
}

function addSink(graph: FlowGraph, sink: Sink, rate: number, tone: Tone, word: string, sentence: string): void {
  const id = `sink:${sink.name}`;
  const href = link("sinks", sink.name);
  const kind = words(sink.kind);
  graph.nodes.push({ id, layer: "sink", title: sink.name, text: tone === "good" || tone === "idle" ? kind : word, sentence: `${kind}: ${compact(rate)} items a second; ${sentence}`, tone, href });
  const late = sink.lag.age_seconds !== null && sink.lag.age_seconds > sink.usual_lag_seconds;
  const note = late ? `${coarse(sink.lag.age_seconds ?? 0)} behind` : "";
  const edge = { rate, tone: tone === "good" && rate <= 0 ? ("idle" as const) : tone, label: rate > 0 || tone === "bad" ? perSecond(rate) : "", note };
  if (sink.pipeline.length === 0) {
    graph.edges.push({ from: JOURNAL, to: id, ...edge });
    return;
  }
  const node = pipelineNode(`pipeline:${id}`, "sink_pipeline", sink.pipeline, href);
  graph.nodes.push(node);
  graph.edges.push({ from: JOURNAL, to: node.id, ...edge, label: "", note: "" }, { from: node.id, to: id, ...edge });
}

/** A cluster that answers a source itself: its items pass beside the journal. */
function addDestination(graph: FlowGraph, status: Status): void {
  const { destination } = status;
  if (!destination) return;
  const from = `source:${destination.source}`;
  const to = `sink:${destination.sink}`;
  if (!graph.nodes.some((node) => node.id === from) || !graph.nodes.some((node) => node.id === to)) return;
  const failing = destination.failing_since !== null;
  graph.edges.push({ from, to, rate: destination.requests > 0 ? 1 : 0, tone: failing ? "bad" : destination.requests > 0 ? "good" : "idle", label: failing ? "failing" : "answered by the cluster", note: "" });
}
