// Places nodes in columns and draws edges between them, for a width. A pipeline stands in the row of its source or sink, so that
// no line passes behind a node.
import { JOURNAL, LAYERS, type FlowEdge, type FlowGraph, type FlowNode, type Layer } from "./graph";

export interface PlacedNode {
  node: FlowNode;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface PlacedEdge {
  edge: FlowEdge;
  path: string;
  /** The stroke, in pixels. */
  width: number;
  /** Where its label stands. */
  labelX: number;
  labelY: number;
  anchor: "start" | "middle" | "end";
}

export interface FlowLayout {
  width: number;
  height: number;
  nodes: PlacedNode[];
  edges: PlacedEdge[];
}

const NODE_HEIGHT = 54;
const GAP = 16;
const MARGIN = 10;
const JOURNAL_LEAST = 140;
const JOURNAL_MOST = 460;
/** Between two columns, for the labels: the more columns, the closer. */
const betweenOf = (columns: number): number => (columns > 3 ? 80 : 112);
/** How wide nodes are at least and at most. */
const WIDTHS: Readonly<Record<Layer, [number, number]>> = {
  source: [96, 232],
  source_pipeline: [68, 150],
  journal: [84, 176],
  sink_pipeline: [68, 150],
  sink: [96, 232],
};

/** From thin to as thick as a rate deserves: each ten times more adds the same. */
export function strokeOf(rate: number): number {
  return rate <= 0 ? 1.5 : Math.min(14, 2 + 2.4 * Math.log10(1 + rate));
}

export function layOut(graph: FlowGraph, width: number): FlowLayout {
  const columns = columnsOf(graph, width);
  const rows = { source: graph.nodes.filter((node) => node.layer === "source"), sink: graph.nodes.filter((node) => node.layer === "sink") };
  const stack = (nodes: unknown[]): number => Math.max(0, nodes.length * (NODE_HEIGHT + GAP) - GAP);
  const tallest = Math.max(stack(rows.source), stack(rows.sink), JOURNAL_LEAST);
  const passing = graph.edges.some((edge) => edge.from !== JOURNAL && edge.to.startsWith("sink:") && !edge.from.startsWith("pipeline:"));
  const height = tallest + 2 * MARGIN + (passing ? 44 : 0);
  const placed = new Map<string, PlacedNode>();
  const place = (node: FlowNode, y: number, height: number): void => {
    const column = columns.get(node.layer);
    if (column) placed.set(node.id, { node, x: column.x, y, width: column.width, height });
  };
  for (const nodes of [rows.source, rows.sink]) {
    const top = MARGIN + (tallest - stack(nodes)) / 2;
    nodes.forEach((node, index) => place(node, top + index * (NODE_HEIGHT + GAP), NODE_HEIGHT));
  }
  for (const node of graph.nodes) {
    if (node.layer === "journal") {
      const own = Math.min(tallest, JOURNAL_MOST);
      place(node, MARGIN + (tallest - own) / 2, own);
    } else if (node.layer.endsWith("_pipeline")) {
      const owner = graph.edges.find((edge) => (node.layer === "source_pipeline" ? edge.to === node.id : edge.from === node.id));
      const row = placed.get((node.layer === "source_pipeline" ? owner?.from : owner?.to) ?? "");
      if (row) place(node, row.y, NODE_HEIGHT);
    }
  }
  return { width, height, nodes: graph.nodes.flatMap((node) => placed.get(node.id) ?? []), edges: edgesOf(graph, placed, columns, height) };
}

interface ColumnPlace {
  x: number;
  width: number;
}

/** Where each column is that has nodes, from left to right over the whole width. */
function columnsOf(graph: FlowGraph, width: number): Map<Layer, ColumnPlace> {
  const layers = LAYERS.filter((layer) => graph.nodes.some((node) => node.layer === layer));
  const most = layers.reduce((all, layer) => all + WIDTHS[layer][1], 0);
  const free = width - 2 * MARGIN - betweenOf(layers.length) * (layers.length - 1);
  const scale = Math.min(1, free / most);
  const widths = layers.map((layer) => Math.max(WIDTHS[layer][0], WIDTHS[layer][1] * scale));
  const used = widths.reduce((all, one) => all + one, 0);
  const between = layers.length > 1 ? Math.max(24, (width - 2 * MARGIN - used) / (layers.length - 1)) : 0;
  const columns = new Map<Layer, ColumnPlace>();
  let x = MARGIN;
  layers.forEach((layer, index) => {
    columns.set(layer, { x, width: widths[index] as number });
    x += (widths[index] as number) + between;
  });
  return columns;
}

function edgesOf(graph: FlowGraph, placed: ReadonlyMap<string, PlacedNode>, columns: ReadonlyMap<Layer, ColumnPlace>, height: number): PlacedEdge[] {
  const ends = graph.edges.flatMap((edge) => {
    const from = placed.get(edge.from);
    const to = placed.get(edge.to);
    return from && to ? [{ edge, from, to }] : [];
  });
  const ports = new Ports(ends);
  return ends.map(({ edge, from, to }) => {
    const start: Point = [from.x + from.width, ports.y(edge, from, "out")];
    const end: Point = [to.x, ports.y(edge, to, "in")];
    const width = strokeOf(edge.rate);
    if (from.node.layer.startsWith("source") && to.node.layer.startsWith("sink")) return { edge, width, ...below(start, end, height) };
    // Level beside the columns of pipelines, and bent between there and the journal.
    const left = from.node.layer === "source" && to.node.layer === "journal" ? columns.get("source_pipeline") : undefined;
    const right = from.node.layer === "journal" && to.node.layer === "sink" ? columns.get("sink_pipeline") : undefined;
    const flat = end[0] - start[0] > ROOMY ? LABEL_ROOM : 0;
    const bendFrom: Point = left ? [left.x + left.width, start[1]] : [start[0] + (from.node.layer === "source" ? flat : 0), start[1]];
    const bendTo: Point = right ? [right.x, end[1]] : [end[0] - (to.node.layer === "sink" ? flat : 0), end[1]];
    const half = (bendTo[0] - bendFrom[0]) / 2;
    const path =
      `M${r(start[0])} ${r(start[1])}H${r(bendFrom[0])}` +
      `C${r(bendFrom[0] + half)} ${r(bendFrom[1])} ${r(bendTo[0] - half)} ${r(bendTo[1])} ${r(bendTo[0])} ${r(bendTo[1])}H${r(end[0])}`;
    return { edge, path, width, ...labelOf(start, end, width, from, to) };
  });
}

type Point = [number, number];

const LABEL_INSET = 10;
/** A line is level under its label, where there is room for a bend besides. */
const LABEL_ROOM = 84;
const ROOMY = 200;

/** A label stands at the source or the sink that it is about, where lines are apart from each other. */
function labelOf(start: Point, end: Point, width: number, from: PlacedNode, to: PlacedNode): { labelX: number; labelY: number; anchor: PlacedEdge["anchor"] } {
  const atSource = to.node.layer === "journal" || from.node.layer === "source";
  const [x, y] = atSource ? start : end;
  return { labelX: atSource ? x + LABEL_INSET : x - LABEL_INSET, labelY: y - width / 2 - 9, anchor: atSource ? "start" : "end" };
}

/** Beside the journal, along the lower edge. */
function below(start: Point, end: Point, height: number): Pick<PlacedEdge, "path" | "labelX" | "labelY" | "anchor"> {
  const low = height - 8;
  const middle = (start[0] + end[0]) / 2;
  const path =
    `M${r(start[0])} ${r(start[1])}C${r(start[0] + 70)} ${r(start[1])} ${r(start[0] + 30)} ${r(low)} ${r(start[0] + 130)} ${r(low)}` +
    `H${r(end[0] - 130)}C${r(end[0] - 30)} ${r(low)} ${r(end[0] - 70)} ${r(end[1])} ${r(end[0])} ${r(end[1])}`;
  return { path, labelX: middle, labelY: low - 12, anchor: "middle" };
}

/** Where edges touch a node: apart from each other, in the order of their other ends. */
class Ports {
  #of = new Map<string, number>();

  constructor(ends: { edge: FlowEdge; from: PlacedNode; to: PlacedNode }[]) {
    for (const side of ["out", "in"] as const) {
      const byNode = new Map<PlacedNode, { edge: FlowEdge; other: PlacedNode }[]>();
      for (const { edge, from, to } of ends) {
        const [own, other] = side === "out" ? [from, to] : [to, from];
        byNode.set(own, [...(byNode.get(own) ?? []), { edge, other }]);
      }
      for (const [node, edges] of byNode) this.#spread(node, edges, side);
    }
  }

  #spread(node: PlacedNode, edges: { edge: FlowEdge; other: PlacedNode }[], side: "in" | "out"): void {
    const middle = (placed: PlacedNode): number => placed.y + placed.height / 2;
    edges.sort((a, b) => middle(a.other) - middle(b.other));
    const inset = Math.min(27, node.height / 4);
    const [top, bottom] = [node.y + inset, node.y + node.height - inset];
    // Level where that is possible, so that most lines are straight.
    const level = edges.every(({ other }) => middle(other) >= top - 1 && middle(other) <= bottom + 1);
    edges.forEach(({ edge, other }, index) => {
      const even = edges.length === 1 ? middle(node) : top + ((bottom - top) * index) / (edges.length - 1);
      this.#of.set(key(edge, side), level && node.node.layer === "journal" ? middle(other) : even);
    });
  }

  y(edge: FlowEdge, node: PlacedNode, side: "in" | "out"): number {
    return this.#of.get(key(edge, side)) ?? node.y + node.height / 2;
  }
}

const key = (edge: FlowEdge, side: string): string => `${edge.from}\n${edge.to}\n${side}`;

const r = (value: number): number => Math.round(value * 10) / 10;
