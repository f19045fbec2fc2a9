// The budget in full: who may hold how much, and who does.
import { overhead, payloadUsed } from "../data/memory";
import { history, now, part, step } from "../data/store";
import type { DeclaredLine, Memory as MemoryStatus, ShareLine } from "../data/status";
import { TimeChart } from "../chart/time_chart";
import { bytes } from "../format/bytes";
import { count } from "../format/count";
import { Card, PageHead } from "../ui/card";
import { Dash } from "../ui/dash";
import { Facts } from "../ui/facts";
import { Table, type Column } from "../ui/table";
import { MemoryBar } from "./overview/memory";

const memory = part((status): MemoryStatus | undefined => status.memory, undefined);

const SHARES: Column<ShareLine>[] = [
  { title: "Share", head: true, cell: (share) => share.name },
  { title: "Floor", right: true, cell: (share) => bytes(share.floor) },
  { title: "At most", right: true, cell: (share) => bytes(share.at_most) },
  { title: "Used", right: true, cell: (share) => bytes(share.used) },
  { title: "Peak", right: true, cell: (share) => bytes(share.peak) },
  { title: "Waiting", right: true, cell: (share) => <span class={share.waiting > 0 ? "bad" : "dim"}>{count(share.waiting)}</span> },
];

const maybe = (value: number | null, most: number) => (value === null ? <Dash /> : <span class={value > most ? "bad" : ""}>{bytes(value)}</span>);

export const DECLARED: Column<DeclaredLine>[] = [
  {
    title: "Owner",
    head: true,
    cell: (line) => (
      <>
        {line.owner}
        <div class="sub">{line.what}</div>
      </>
    ),
  },
  { title: "At most", right: true, cell: (line) => count(line.count) },
  { title: "Each", right: true, cell: (line) => bytes(line.each) },
  { title: "Declared", right: true, cell: (line) => <b>{bytes(line.declared)}</b> },
  { title: "Used", right: true, cell: (line) => maybe(line.used, line.declared) },
  { title: "Peak", right: true, cell: (line) => maybe(line.peak, line.declared) },
];

const readResident = () => {
  step.value;
  const resident = history.levels("resident", now.peek());
  const payload = history.levels("payload", now.peek());
  return { times: resident.times, series: [resident.series[0] ?? [], payload.series[0] ?? []] };
};

export function Memory() {
  const all = memory.value;
  if (!all) return null;
  return (
    <>
      <PageHead title="Memory">Resident memory never exceeds the budget: payload is charged before it is touched, and everything else has a bound that was declared at the start.</PageHead>
      <div class="grid">
        <Card title="Budget" note={`${bytes(all.limit)}, ${all.origin}`} class="wide memory-wide">
          <MemoryBar memory={all} />
        </Card>
        <Card title="Resident" note="last 15 minutes" class="traffic">
          <TimeChart
            series={[{ label: "resident", color: "accent", kind: "area" }, { label: "payload", color: "second", kind: "line" }]}
            read={readResident}
            height={190}
            label="Resident memory and payload over the last 15 minutes"
            format={bytes} binary
          />
          <ul class="legend chart-legend">
            <li><i class="key accent" aria-hidden="true" /><span class="legend-name">resident</span></li>
            <li><i class="key second" aria-hidden="true" /><span class="legend-name">payload charged</span></li>
          </ul>
        </Card>
        <Card title="Numbers">
          <Facts facts={facts(all)} />
        </Card>
        <Card title="Payload" note={`${bytes(payloadUsed(all))} of ${bytes(all.payload.total)} charged, ${bytes(all.payload.idle)} in hot pages`} class="wide">
          <Table caption="Shares of payload" columns={SHARES} rows={all.payload.shares} id={(share) => share.name} />
        </Card>
        <Card title="Declared" note={`${bytes(overhead(all))} for everything but payload`} class="wide">
          <Table caption="Declared memory" columns={DECLARED} rows={all.declared} id={(line) => `${line.owner} ${line.what}`} />
        </Card>
      </div>
    </>
  );
}

function facts(memory: MemoryStatus) {
  const { resident, limit } = memory;
  const full = memory.connections_open >= memory.connections_limit && memory.connections_limit > 0;
  return [
    resident !== null && { name: "resident", value: bytes(resident.now), tone: resident.now > limit ? ("bad" as const) : undefined },
    resident !== null && { name: "private", value: bytes(resident.anonymous) },
    resident !== null && { name: "of files", value: bytes(resident.file) },
    resident !== null && { name: "peak", value: bytes(resident.peak), tone: resident.peak > limit ? ("bad" as const) : undefined },
    { name: "heap", value: bytes(memory.heap_live) },
    { name: "connections", value: `${count(memory.connections_open)} of ${count(memory.connections_limit)}`, tone: full ? ("bad" as const) : undefined },
  ];
}
