// The journal: what every sink follows.
import { TimeChart } from "../chart/time_chart";
import { untilFull } from "../data/health";
import { history, now, part, step } from "../data/store";
import type { Journal as JournalStatus, Sink } from "../data/status";
import { bytes } from "../format/bytes";
import { compact, count, percent, plural } from "../format/count";
import { duration } from "../format/duration";
import { harmless } from "../format/text";
import { link } from "../router";
import { Card, PageHead } from "../ui/card";
import { Dash } from "../ui/dash";
import { Facts } from "../ui/facts";
import { StackedBar } from "../ui/stacked_bar";
import { Name } from "../ui/stranger";
import { Table, type Column } from "../ui/table";
import { LeftBehindCard } from "./sinks/left_behind";

const journal = part((status): JournalStatus | undefined => status.journal, undefined);
const sinks = part((status): readonly Sink[] => status.sinks, []);

const readSize = () => {
  step.value;
  return history.levels("journal_bytes", now.peek());
};

const CURSORS: Column<Sink>[] = [
  {
    title: "Sink",
    head: true,
    cell: (sink) => (
      <a href={link("sinks", sink.name)}>
        <Name>{sink.name}</Name>
      </a>
    ),
  },
  { title: "Cursor", right: true, cell: (sink) => count(sink.cursor) },
  { title: "Items behind", right: true, cell: (sink) => count(sink.lag.items) },
  { title: "Bytes behind", right: true, cell: (sink) => bytes(sink.lag.bytes) },
  { title: "Oldest", right: true, cell: (sink) => (sink.lag.age_seconds === null ? <Dash /> : duration(sink.lag.age_seconds)) },
];

export function Journal() {
  const all = journal.value;
  if (!all) return null;
  const used = all.bytes / Math.max(1, all.quota);
  return (
    <>
      <PageHead title="Journal">What was acknowledged stays here until every sink has delivered it.</PageHead>
      <div class="grid">
        <Card title="On disk" note={`${bytes(all.bytes)} of ${bytes(all.quota)} (${percent(all.bytes, all.quota)} %) in ${plural(all.segments, "segment")}`} class="traffic">
          <StackedBar label={`Journal: ${percent(all.bytes, all.quota)} percent of its quota`} parts={[{ name: bytes(all.bytes), part: used, color: used > 0.9 ? "bad" : used > 0.7 ? "warn" : "part1" }]} />
          <div class="space" />
          {all.trouble !== null && <p class="say bad">It accepts nothing: {harmless(all.trouble)}.</p>}
          <TimeChart series={[{ label: "size", color: "accent", kind: "area" }]} read={readSize} height={170} label="Size of the journal over the last 15 minutes" format={bytes} binary />
        </Card>
        <Card title="Numbers">
          <Facts facts={facts(all)} />
        </Card>
        <Card title="Cursors" note={`the next record is ${count(all.head)}`} class="wide">
          <Table caption="Cursors of sinks" columns={CURSORS} rows={sinks.value} id={(sink) => sink.name} none="No sink is configured." />
        </Card>
      </div>
      <div class="below">
        <LeftBehindCard />
      </div>
    </>
  );
}

function facts(journal: JournalStatus) {
  const { damage, syncs } = journal;
  const whole = damage.records === 0 && damage.bytes === 0 && damage.quarantined_segments === 0;
  return [
    { name: "full", ...untilFull(journal) },
    { name: "folder", value: <code>{harmless(journal.dir)}</code> },
    { name: "acknowledged", value: `after ${journal.durability}` },
    { name: "oldest record", value: journal.oldest_age_seconds === null ? "–" : duration(journal.oldest_age_seconds) },
    { name: "items, ever", value: count(journal.items_total) },
    journal.items_per_second !== null && { name: "lately", value: `${compact(journal.items_per_second)} items/s` },
    { name: "syncs", value: syncs.count === 0 ? "none" : `${count(syncs.count)}, ${duration(syncs.mean_seconds)} on average` },
    whole
      ? { name: "damaged", value: "nothing" }
      : { name: "damaged", tone: "bad" as const, value: `${plural(damage.records, "record")}, ${bytes(damage.bytes)}; ${plural(damage.quarantined_segments, "segment")} set aside` },
  ];
}
