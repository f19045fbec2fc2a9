import type { Counts } from "../data/status";
import { count } from "../format/count";
import { words } from "../format/text";
import { Table } from "./table";

interface ReasonTableProps {
  title: string;
  counts: Counts;
  why: (reason: string) => string;
  /** Reasons for which nobody has to look. */
  quiet?: (reason: string) => boolean;
}

/** Counts by reason, the most frequent first, and what each reason means. */
export function ReasonTable({ title, counts, why, quiet = () => false }: ReasonTableProps) {
  const rows = Object.entries(counts).sort((a, b) => b[1] - a[1]);
  return (
    <Table
      caption={`${title} by reason`}
      columns={[
        { title: `${title} for`, head: true, cell: ([reason]) => words(reason) },
        { title: "How many", right: true, cell: ([reason, times]) => <span class={quiet(reason) ? "" : "warn"}>{count(times)}</span> },
        { title: "What it means", wide: true, cell: ([reason]) => why(reason) },
      ]}
      rows={rows}
      id={([reason]) => reason}
      none="nothing"
    />
  );
}
