import { useComputed, useSignal } from "@preact/signals";
import { sinkKey, sum } from "../../data/counters";
import { inFlight, sinkHealth } from "../../data/health";
import { now, part, rate } from "../../data/store";
import type { Sink } from "../../data/status";
import { bytes } from "../../format/bytes";
import { compact, count } from "../../format/count";
import { duration } from "../../format/duration";
import { words } from "../../format/text";
import { link } from "../../router";
import { Badge } from "../../ui/badge";
import { Card, Empty, PageHead } from "../../ui/card";
import { Dash } from "../../ui/dash";
import { FilterBox, matches } from "../../ui/filter";
import { Name, Stranger } from "../../ui/stranger";
import { Table, type Column } from "../../ui/table";
import { worstFirst } from "../overview/sinks";
import { LeftBehindCard } from "./left_behind";

const sinks = part((status): readonly Sink[] => status.sinks, []);
const arriving = part((status) => status.journal.items_per_second, null);

export const COLUMNS: Column<Sink>[] = [
  {
    title: "Sink",
    head: true,
    cell: (sink) => (
      <>
        <a href={link("sinks", sink.name)}>
          <Name>{sink.name}</Name>
        </a>
        <div class="sub">{words(sink.kind)}</div>
      </>
    ),
  },
  { title: "State", cell: (sink) => <SinkBadge sink={sink} /> },
  { title: "Lag", right: true, cell: (sink) => <LagCell sink={sink} /> },
  { title: "Out", right: true, cell: (sink) => `${compact(rate(sinkKey(sink.name, "out")) ?? 0)}/s` },
  { title: "In flight", right: true, cell: inFlight },
  { title: "Delivered", right: true, minor: true, cell: (sink) => count(sink.delivered) },
  { title: "Dropped", right: true, minor: true, cell: (sink) => <span class={sum(sink.dropped) > 0 ? "warn" : "dim"}>{count(sum(sink.dropped))}</span> },
  { title: "Failures", right: true, minor: true, cell: (sink) => <span class={sink.failures > 0 ? "" : "dim"}>{count(sink.failures)}</span> },
  { title: "What it says", wide: true, cell: (sink) => <Says sink={sink} /> },
];

export function Sinks() {
  const filter = useSignal("");
  const shown = useComputed(() => worstFirst(sinks.value).filter((sink) => matches(filter.value, sink.name, sink.kind, sink.target)));
  return (
    <>
      <PageHead title="Sinks" aside={sinks.value.length > 8 && <FilterBox value={filter} label="Filter sinks" />}>
        A sink's queue is its distance from the end of the journal: one that stalls costs disk, not memory, and slows no other.
      </PageHead>
      <Card title={sinks.value.length === 1 ? "1 sink" : `${count(sinks.value.length)} sinks`}>
        {sinks.value.length === 0 ? (
          <Empty title="No sink is configured.">Data is accepted and stays in the journal until its quota is used up.</Empty>
        ) : (
          <Table caption="Sinks" columns={COLUMNS} rows={shown.value} id={(sink) => sink.name} none="No sink matches." />
        )}
      </Card>
      <LeftBehindCard />
    </>
  );
}

function SinkBadge({ sink }: { sink: Sink }) {
  const health = sinkHealth(sink, arriving.value, now.value);
  return <Badge tone={health.tone}>{health.word}</Badge>;
}

function LagCell({ sink }: { sink: Sink }) {
  if (sink.lag.age_seconds === null) return <span class="dim">none</span>;
  const late = sink.lag.age_seconds > sink.usual_lag_seconds;
  return (
    <>
      <span class={late ? "warn" : ""}>{duration(sink.lag.age_seconds)}</span>
      <div class="sub">
        {compact(sink.lag.items)} items, {bytes(sink.lag.bytes)}
      </div>
    </>
  );
}

function Says({ sink }: { sink: Sink }) {
  const health = sinkHealth(sink, arriving.value, now.value);
  if (health.tone === "good" || health.tone === "idle") return <Dash />;
  return <Stranger text={health.sentence} most={120} />;
}
