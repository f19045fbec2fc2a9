// The overview: whether it is all right, first; then where memory, disk and data are.
import { useComputed } from "@preact/signals";
import { hasData } from "../../data/health";
import { status } from "../../data/store";
import { BooksCard } from "./books";
import { GettingStarted } from "./getting_started";
import { JournalCard } from "./journal";
import { MemoryCard } from "./memory";
import { SinksCard } from "./sinks";
import { StateHead } from "./state";
import { TrafficCard } from "./traffic";

export function Overview() {
  const started = useComputed(() => (status.value ? hasData(status.value) : true));
  return (
    <>
      <StateHead />
      <div class="grid">
        <div class="column main">
          {!started.value && <GettingStarted />}
          <TrafficCard />
          <SinksCard />
        </div>
        <div class="column side">
          <MemoryCard />
          <JournalCard />
        </div>
        <BooksCard />
      </div>
    </>
  );
}
