import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { flowGraph } from "../../flow/graph";
import { now, rate, status, tick } from "../../data/store";
import { PageHead } from "../../ui/card";
import { Choice } from "../../ui/choice";
import { FlowDiagram } from "./diagram";
import { FlowList } from "./list";

const NARROW = "(max-width: 760px)";

/** Where data flows: sources, journal, sinks. */
export function Flow() {
  const narrow = useSignal(matchMedia(NARROW).matches);
  const chosen = useSignal<"graph" | "list" | undefined>(undefined);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const change = (): void => {
      narrow.value = query.matches;
    };
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  const graph = useComputed(() => {
    tick.value;
    return status.value ? flowGraph(status.value, rate, now.value) : { nodes: [], edges: [] };
  });
  const view = narrow.value ? "list" : (chosen.value ?? "graph");
  return (
    <>
      <PageHead
        title="Flow"
        aside={!narrow.value && <Choice label="Shown as" options={[["graph", "Graph"], ["list", "List"]]} value={view} choose={(value) => (chosen.value = value)} />}
      >
        Sources append to the journal; each sink follows it at its own pace. The thicker a line, the more items flow.
      </PageHead>
      <section class="card flow-card" aria-label={view === "graph" ? "Graph" : "List"}>
        {view === "graph" ? <FlowDiagram graph={graph} /> : <FlowList graph={graph} />}
      </section>
    </>
  );
}
