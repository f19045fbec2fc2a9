// The graph, laid out for the width that there is: lines in SVG, nodes as links on it.
import type { ReadonlySignal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { withoutPipelines, type FlowGraph } from "../../flow/graph";
import { layOut, type PlacedEdge, type PlacedNode } from "../../flow/layout";
import { harmless } from "../../format/text";

const NARROWEST = 560;
/** With less room, pipelines are left out of the graph. */
const ROOMY = 900;

export function FlowDiagram({ graph }: { graph: ReadonlySignal<FlowGraph> }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const size = new ResizeObserver(() => setWidth(element.clientWidth));
    size.observe(element);
    return () => size.disconnect();
  }, []);
  const drawn = Math.max(width, NARROWEST);
  const { nodes, edges, height } = layOut(drawn < ROOMY ? withoutPipelines(graph.value) : graph.value, drawn);
  return (
    <div ref={box} class="flow-box">
      {width > 0 && (
        <div class="flow" style={{ width: `${drawn}px`, height: `${height}px` }}>
          <svg width={drawn} height={height} aria-hidden="true">
            {edges.map((edge) => (
              <Edge key={`${edge.edge.from} ${edge.edge.to}`} placed={edge} />
            ))}
            {edges.map((edge) => (
              <Label key={`${edge.edge.from} ${edge.edge.to}`} placed={edge} />
            ))}
          </svg>
          {nodes.map((node) => (
            <Node key={node.node.id} placed={node} />
          ))}
        </div>
      )}
    </div>
  );
}

function Edge({ placed: { edge, path, width } }: { placed: PlacedEdge }) {
  return (
    <>
      <path class={`edge ${edge.tone}`} d={path} stroke-width={width.toFixed(1)} />
      {edge.rate > 0 && <path class={`stream ${edge.tone}`} d={path} stroke-width={Math.max(1.5, width * 0.4).toFixed(1)} />}
    </>
  );
}

function Label({ placed: { edge, width, labelX, labelY, anchor } }: { placed: PlacedEdge }) {
  return (
    <>
      {edge.label !== "" && (
        <text class="edge-label" x={labelX} y={labelY} text-anchor={anchor} dominant-baseline="central">
          {edge.label}
        </text>
      )}
      {edge.note !== "" && (
        <text class={`edge-note ${edge.tone}`} x={labelX} y={labelY + width + 19} text-anchor={anchor} dominant-baseline="central">
          {edge.note}
        </text>
      )}
    </>
  );
}

function Node({ placed: { node, x, y, width, height } }: { placed: PlacedNode }) {
  const title = harmless(node.title);
  const text = harmless(node.text);
  const sentence = harmless(node.sentence);
  const place = { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` };
  return (
    <a href={node.href} class={`node ${node.tone} ${node.layer}`} style={place} title={`${title}: ${sentence}`}>
      {node.level !== undefined && <i class="level" style={{ height: `${level(node.level)}%` }} />}
      <span class="node-title">{title}</span>
      <span class="node-text">{text}</span>
      <span class="unseen">{sentence}</span>
      {node.layer !== "journal" && <i class="dot" />}
    </a>
  );
}

/** The journal fills like a basin; what there is can be seen. */
const level = (part: number): number => (part <= 0 ? 0 : Math.min(100, Math.max(2, part * 100)));
