import { part } from "../../data/store";
import type { LeftBehind } from "../../data/status";
import { bytes } from "../../format/bytes";
import { count } from "../../format/count";
import { duration } from "../../format/duration";
import { Card } from "../../ui/card";
import { Copy } from "../../ui/copy";
import { Name } from "../../ui/stranger";
import { Table, type Column } from "../../ui/table";

const left = part((status): readonly LeftBehind[] => status.left_behind, []);

const COLUMNS: Column<LeftBehind>[] = [
  { title: "Name", head: true, cell: (left) => <Name>{left.name}</Name> },
  { title: "Items not sent", right: true, cell: (left) => <span class={left.items > 0 ? "warn" : ""}>{count(left.items)}</span> },
  { title: "Journal behind it", right: true, cell: (left) => bytes(left.bytes) },
  { title: "Oldest", right: true, cell: (left) => (left.age_seconds === null ? "–" : duration(left.age_seconds)) },
  {
    title: "If it is gone for good",
    wide: true,
    cell: (left) => (
      <span class="command">
        <code>{left.command}</code> <Copy text={left.command} what={left.command} />
      </span>
    ),
  },
];

/** Cursors of sinks that are not configured any more. */
export function LeftBehindCard() {
  if (left.value.length === 0) return null;
  return (
    <Card title="Left behind">
      <p class="say">These sinks are no longer configured. The journal keeps their unsent items, in case they were renamed or return.</p>
      <Table caption="Sinks left behind" columns={COLUMNS} rows={left.value} id={(left) => left.name} />
    </Card>
  );
}
