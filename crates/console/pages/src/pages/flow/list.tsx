// The flow in words: for narrow screens, and for those who prefer a list.
import type { ReadonlySignal } from "@preact/signals";
import type { FlowEdge, FlowGraph, FlowNode, Layer } from "../../flow/graph";
import { harmless, sentence } from "../../format/text";
import { Badge } from "../../ui/badge";
import { Name } from "../../ui/stranger";

const PARTS: readonly [Layer[], string][] = [
  [["source", "source_pipeline"], "Sources"],
  [["journal"], "Journal"],
  [["sink_pipeline", "sink"], "Sinks"],
];

const WORDS = { good: "flows", idle: "idle", warn: "look", bad: "trouble" };

export function FlowList({ graph }: { graph: ReadonlySignal<FlowGraph> }) {
  const { nodes, edges } = graph.value;
  return (
    <div class="flow-list">
      {PARTS.map(([layers, title]) => (
        <section key={title}>
          <h2>{title}</h2>
          <ul class="lines">
            {nodes
              .filter((node) => layers.includes(node.layer))
              .map((node) => (
                <Item key={node.id} node={node} edge={edges.find((edge) => (layers.includes("source") ? edge.from : edge.to) === node.id && edge.label !== "")} />
              ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function Item({ node, edge }: { node: FlowNode; edge: FlowEdge | undefined }) {
  return (
    <li class={node.tone === "warn" || node.tone === "bad" ? `line ${node.tone}` : "line"}>
      <a class="line-name" href={node.href}>
        <Name>{node.title}</Name>
      </a>
      <Badge tone={node.tone}>{WORDS[node.tone]}</Badge>
      <span class="line-rate">{edge?.label ?? ""}</span>
      <span class="line-error">{sentence(harmless(node.sentence))}</span>
    </li>
  );
}
