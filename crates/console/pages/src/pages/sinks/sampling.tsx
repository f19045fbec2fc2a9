import type { PolicyDecisions, TraceDecisions } from "../../data/status";
import { bytes } from "../../format/bytes";
import { count, plural } from "../../format/count";
import { Badge } from "../../ui/badge";
import { Card } from "../../ui/card";
import { Facts } from "../../ui/facts";
import { Name } from "../../ui/stranger";
import { Table, type Column } from "../../ui/table";

/** A row of the table: a policy, or all that no policy kept. */
interface Row extends PolicyDecisions {
  share: number;
}

const COLUMNS: Column<Row>[] = [
  { title: "Policy", head: true, cell: (row) => (row.policy === "" ? <span class="dim">none</span> : <Name>{row.policy}</Name>) },
  { title: "Decision", cell: (row) => <Badge tone={row.decision === "kept" ? "good" : "idle"}>{row.decision}</Badge> },
  { title: "Traces", right: true, cell: (row) => count(row.traces) },
  { title: "Of all", right: true, cell: (row) => `${(row.share * 100).toFixed(1)} %` },
  { title: "Spans", right: true, minor: true, cell: (row) => count(row.spans) },
];

function rows(sampling: TraceDecisions): Row[] {
  const unkept: PolicyDecisions = { policy: "", decision: "dropped", traces: sampling.unkept_traces, spans: sampling.unkept_spans };
  const all = [...sampling.policies, unkept];
  const traces = all.reduce((sum, row) => sum + row.traces, 0);
  return all.map((row) => ({ ...row, share: traces > 0 ? row.traces / traces : 0 }));
}

/** The decisions of a sink about traces. */
export function SamplingCard({ sampling }: { sampling: TraceDecisions | undefined }) {
  if (!sampling) return null;
  const more = sampling.policies_left_out ?? 0;
  const late = sampling.late_kept + sampling.late_dropped;
  return (
    <Card title="Sampled traces" class="wide" note={more > 0 ? `and ${count(more)} more policies: /metrics has them` : undefined}>
      <Facts
        facts={[
          { name: "undecided", value: `${plural(sampling.undecided, "trace")} of at most ${count(sampling.most_undecided)}` },
          { name: "decided early", tone: sampling.early > 0 ? "warn" : undefined, value: plural(sampling.early, "trace") },
          { name: "late spans", value: `${count(late)}, of which ${count(sampling.late_kept)} were sent` },
          { name: "remembered", value: plural(sampling.remembered, "decision") },
          sampling.forgotten > 0 && { name: "forgotten too soon", tone: "warn", value: plural(sampling.forgotten, "decision") },
          sampling.unknown > 0 && { name: "sent undecided", tone: "warn", value: plural(sampling.unknown, "span") },
          { name: "kept for a restart", value: bytes(sampling.held_back_bytes) },
        ]}
      />
      <Table caption="Traces by the policy that decided" columns={COLUMNS} rows={rows(sampling)} id={(row) => row.policy} />
    </Card>
  );
}
