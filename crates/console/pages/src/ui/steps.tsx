import type { PipelineStep } from "../data/status";
import { count } from "../format/count";
import { Dash } from "./dash";
import { Name } from "./stranger";
import { Table, type Column } from "./table";

const COLUMNS: Column<PipelineStep>[] = [
  { title: "Pipeline", cell: (step) => (step.pipeline === "" ? <Dash /> : <Name>{step.pipeline}</Name>) },
  { title: "Step", head: true, cell: (step) => <Name>{step.step}</Name> },
  { title: "Items", right: true, cell: (step) => count(step.items) },
  { title: "Filtered", right: true, cell: (step) => count(step.filtered) },
  { title: "Sampled out", right: true, cell: (step) => count(step.sampled_out) },
  { title: "Failed", right: true, cell: (step) => <span class={step.failures > 0 ? "bad" : "dim"}>{count(step.failures)}</span> },
];

/** The steps of a pipeline, in their order. */
export function Steps({ steps, leftOut = 0 }: { steps: readonly PipelineStep[]; leftOut?: number }) {
  return (
    <>
      <Table caption="Steps of the pipeline" columns={COLUMNS} rows={steps} id={(step, index) => `${index} ${step.pipeline} ${step.step}`} />
      {leftOut > 0 && <p class="more">and {count(leftOut)} more: /metrics has them</p>}
      <p class="more">
        <a href="/pipelines">Try steps on pasted items</a>
      </p>
    </>
  );
}
