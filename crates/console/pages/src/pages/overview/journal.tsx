import { untilFull } from "../../data/health";
import { part } from "../../data/store";
import type { Journal } from "../../data/status";
import { bytes } from "../../format/bytes";
import { compact, count, percent } from "../../format/count";
import { duration } from "../../format/duration";
import { harmless } from "../../format/text";
import { link } from "../../router";
import { Card } from "../../ui/card";
import { Facts } from "../../ui/facts";
import { StackedBar } from "../../ui/stacked_bar";

const journal = part((status): Journal | undefined => status.journal, undefined);

export function JournalCard() {
  const all = journal.value;
  if (!all) return null;
  const used = all.bytes / Math.max(1, all.quota);
  return (
    <Card title="Journal" note={`${bytes(all.bytes)} of ${bytes(all.quota)} (${percent(all.bytes, all.quota)} %)`} aside={<a href={link("journal")}>Details</a>} class="journal">
      <StackedBar label={`Journal: ${percent(all.bytes, all.quota)} percent of its quota`} parts={[{ name: bytes(all.bytes), part: used, color: used > 0.9 ? "bad" : used > 0.7 ? "warn" : "part1" }]} />
      <Facts
        facts={[
          { name: "full", ...untilFull(all) },
          { name: "oldest record", value: all.oldest_age_seconds === null ? "–" : duration(all.oldest_age_seconds) },
          { name: "appended", value: all.items_per_second === null ? `${count(all.items_total)} items` : `${compact(all.items_per_second)} items/s` },
          { name: `${all.durability} takes`, value: all.syncs.count === 0 ? "–" : duration(all.syncs.mean_seconds) },
        ]}
      />
      {all.trouble !== null && <p class="say bad">It accepts nothing: {harmless(all.trouble)}.</p>}
    </Card>
  );
}
