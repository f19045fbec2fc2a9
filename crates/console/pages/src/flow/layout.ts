// Places nodes in columns and draws edges between them, for a width.
import { LAYERS, type FlowEdge, type FlowGraph, type FlowNode, type Layer } from "./graph";

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
const JOURNAL_HEIGHT = 132;
/** A column gets at least this much between it and the next one, for the labels. */
const LEAST_BETWEEN = 96;
const WIDEST_NODE = 216;
const NARROWEST_NODE = 96;

/** From thin to as thick as a rate deserves: each ten times more adds the same. */
export function strokeOf(rate: number): number {
  return rate <= 0 ? 1.5 : Math.min(14, 2 + 2.4 * Math.log10(1 + rate));
}

export function layOut(graph: FlowGraph, width: number): FlowLayout {
  const columns = LAYERS.map((layer) => graph.nodes.filter((node) => node.layer === layer)).filter((column) => column.length > 0);
  const tallest = Math.max(...columns.map(heightOf), 0);
  const height = tallest + 2 * MARGIN;
  const between = LEAST_BETWEEN;
  const nodeWidth = Math.max(NARROWEST_NODE, Math.min(WIDEST_NODE, (width - 2 * MARGIN - between * (columns.length - 1)) / Math.max(1, columns.length)));
  const step = columns.length > 1 ? (width - 2 * MARGIN - nodeWidth) / (columns.length - 1) : 0;
  const placed = new Map<string, PlacedNode>();
  columns.forEach((column, index) => {
    const x = MARGIN + step * index;
    const isJournal = column[0]?.layer === "journal";
    let y = MARGIN + (tallest - heightOf(column)) / 2;
    for (const node of column) {
      const own = isJournal ? Math.max(JOURNAL_HEIGHT, Math.min(tallest, 420)) : NODE_HEIGHT;
      placed.set(node.id, { node, x, y: isJournal ? MARGIN + (tallest - own) / 2 : y, width: nodeWidth, height: own });
      y += own + GAP;
    }
  });
  return { width, height, nodes: [...placed.values()], edges: edgesOf(graph, placed, height) };
}

const heightOf = (column: FlowNode[]): number =>
  column[0]?.layer === "journal" ? JOURNAL_HEIGHT : column.length * NODE_HEIGHT + (column.length - 1) * GAP;

function edgesOf(graph: FlowGraph, placed: ReadonlyMap<string, PlacedNode>, height: number): PlacedEdge[] {
  const ends = graph.edges.flatMap((edge) => {
    const from = placed.get(edge.from);
    const to = placed.get(edge.to);
    return from && to ? [{ edge, from, to }] : [];
  });
  const ports = new Ports(ends);
  return ends.map(({ edge, from, to }) => {
    const [x1, x2] = [from.x + from.width, to.x];
    const [y1, y2] = [ports.y(edge, from, "out"), ports.y(edge, to, "in")];
    if (skips(from.node.layer, to.node.layer)) {
      const low = height - 2;
      const path = `M${r(x1)} ${r(y1)}C${r(x1 + 60)} ${r(y1)} ${r(x1 + 40)} ${r(low)} ${r((x1 + x2) / 2)} ${r(low)}S${r(x2 - 60)} ${r(y2)} ${r(x2)} ${r(y2)}`;
      return { edge, path, width: strokeOf(edge.rate), labelX: (x1 + x2) / 2, labelY: low - 8 };
    }
    const bend = (x2 - x1) / 2;
    const path = `M${r(x1)} ${r(y1)}C${r(x1 + bend)} ${r(y1)} ${r(x2 - bend)} ${r(y2)} ${r(x2)} ${r(y2)}`;
    // Nearer to the node that it is about, where edges are apart.
    const near = to.node.layer === "journal" ? 0.3 : from.node.layer === "journal" ? 0.7 : 0.5;
    const [labelX, labelY] = onCurve(x1, y1, x2, y2, near);
    return { edge, path, width: strokeOf(edge.rate), labelX, labelY };
  });
}

/** Whether an edge passes the journal by. */
const skips = (from: Layer, to: Layer): boolean => from.startsWith("source") && to.startsWith("sink");

/** Where edges touch a node: apart from each other at the journal, in the order of their other ends. */
class Ports {
  #of = new Map<string, number>();

  constructor(ends: { edge: FlowEdge; from: PlacedNode; to: PlacedNode }[]) {
    for (const side of ["out", "in"] as const) {
      const byNode = new Map<PlacedNode, { edge: FlowEdge; other: PlacedNode }[]>();
      for (const { edge, from, to } of ends) {
        const [own, other] = side === "out" ? [from, to] : [to, from];
        byNode.set(own, [...(byNode.get(own) ?? []), { edge, other }]);
      }
      for (const [node, edges] of byNode) {
        edges.sort((a, b) => a.other.y + a.other.height / 2 - (b.other.y + b.other.height / 2));
        const inset = Math.min(28, node.height / 4);
        const room = node.height - 2 * inset;
        edges.forEach(({ edge }, index) => {
          const y = edges.length === 1 ? node.y + node.height / 2 : node.y + inset + (room * index) / (edges.length - 1);
          this.#of.set(key(edge, side), y);
        });
      }
    }
  }

  y(edge: FlowEdge, node: PlacedNode, side: "in" | "out"): number {
    return this.#of.get(key(edge, side)) ?? node.y + node.height / 2;
  }
}

const key = (edge: FlowEdge, side: string): string => `${edge.from}\n${edge.to}\n${side}`;

/** A point of the curve between two points with level ends, at a part of its way. */
function onCurve(x1: number, y1: number, x2: number, y2: number, t: number): [number, number] {
  const middle = (x1 + x2) / 2;
  const [a, b, c, d] = [(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t ** 2, t ** 3];
  return [a * x1 + (b + c) * middle + d * x2, (a + b) * y1 + (c + d) * y2];
}

const r = (value: number): number => Math.round(value * 10) / 10;
