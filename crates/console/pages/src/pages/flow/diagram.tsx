// The graph as SVG, laid out for the width that there is.
import type { ReadonlySignal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { FlowGraph } from "../../flow/graph";
import { layOut, type PlacedEdge, type PlacedNode } from "../../flow/layout";
import { cut, harmless } from "../../format/text";

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
  const { nodes, edges, height } = layOut(graph.value, Math.max(width, 560));
  return (
    <div ref={box} class="flow-box">
      {width > 0 && (
        <svg class="flow" width={Math.max(width, 560)} height={height} role="group" aria-label="Flow from sources to sinks">
          <g aria-hidden="true">
            {edges.map((edge) => (
              <Edge key={`${edge.edge.from} ${edge.edge.to}`} placed={edge} />
            ))}
          </g>
          {nodes.map((node) => (
            <Node key={node.node.id} placed={node} />
          ))}
          <g aria-hidden="true">
            {edges.map((edge) => (
              <Label key={`${edge.edge.from} ${edge.edge.to}`} placed={edge} />
            ))}
          </g>
        </svg>
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

function Label({ placed: { edge, labelX, labelY } }: { placed: PlacedEdge }) {
  if (edge.label === "" && edge.note === "") return null;
  const top = edge.label !== "" && edge.note !== "" ? labelY - 6 : labelY;
  return (
    <>
      {edge.label !== "" && (
        <text class="edge-label" x={labelX} y={top} text-anchor="middle" dominant-baseline="central">
          {edge.label}
        </text>
      )}
      {edge.note !== "" && (
        <text class={`edge-note ${edge.tone}`} x={labelX} y={edge.label === "" ? labelY : top + 15} text-anchor="middle" dominant-baseline="central">
          {edge.note}
        </text>
      )}
    </>
  );
}

/** The width of a letter, about. */
const TITLE_LETTER = 7.6;
const TEXT_LETTER = 6.4;
const INSET = 14;

function Node({ placed }: { placed: PlacedNode }) {
  const { node, x, y, width, height } = placed;
  const isJournal = node.layer === "journal";
  const title = harmless(node.title);
  const room = width - 2 * INSET - (isJournal ? 0 : 12);
  const middle = isJournal ? y + height / 2 : y + height / 2;
  return (
    <a href={node.href} class={`node ${node.tone} ${node.layer}`} aria-label={`${title}: ${harmless(node.sentence)}`}>
      <title>{`${title}: ${harmless(node.sentence)}`}</title>
      <rect class="node-box" x={x} y={y} width={width} height={height} rx="10" />
      {isJournal && <Level placed={placed} />}
      {!isJournal && <circle class="node-dot" cx={x + width - INSET} cy={y + 19} r="4" />}
      <text class="node-title" x={isJournal ? x + width / 2 : x + INSET} y={middle - 8} text-anchor={isJournal ? "middle" : "start"} dominant-baseline="central">
        {cut(title, Math.floor(room / TITLE_LETTER))}
      </text>
      <text class="node-text" x={isJournal ? x + width / 2 : x + INSET} y={middle + 11} text-anchor={isJournal ? "middle" : "start"} dominant-baseline="central">
        {cut(harmless(node.text), Math.floor((width - 2 * INSET) / TEXT_LETTER))}
      </text>
    </a>
  );
}

/** The journal fills like a basin. */
function Level({ placed: { node, x, y, width, height } }: { placed: PlacedNode }) {
  const level = Math.min(1, Math.max(0, node.level ?? 0));
  const inner = height - 4;
  const filled = Math.max(level > 0 ? 3 : 0, inner * level);
  return <rect class="level" x={x + 2} y={y + 2 + inner - filled} width={width - 4} height={filled} rx={Math.min(8, filled / 2)} />;
}
