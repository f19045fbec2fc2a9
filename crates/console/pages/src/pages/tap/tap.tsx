// Items as they pass a source or a sink.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { part } from "../../data/store";
import { count } from "../../format/count";
import { harmless } from "../../format/text";
import { route } from "../../router";
import { Card, Empty, PageHead } from "../../ui/card";
import { Copy } from "../../ui/copy";
import { FilterForm } from "./filter_form";
import { Line } from "./line";
import { MOST_LINES, NO_FILTER, TapReader, type TapFilter } from "./reader";

const points = part((status) => [...status.books.sources.map((source) => `source:${source.name}`), ...status.sinks.map((sink) => `sink:${sink.name}`)].join("\n"), "");

export function Tap() {
  const reader = useMemo(() => new TapReader(), []);
  const asked = route.peek().query.get("at");
  const filter = useSignal<TapFilter>(asked === null ? NO_FILTER : { ...NO_FILTER, point: asked });
  useEffect(() => {
    reader.start(filter.peek());
    return () => reader.stop();
  }, [reader]);
  const known = useComputed(() => points.value.split("\n").filter((point) => point !== ""));
  const look = (next: TapFilter): void => {
    filter.value = next;
    reader.clear();
    reader.start(next);
  };
  const running = reader.running.value;
  return (
    <>
      <PageHead
        title="Tap"
        aside={
          <div class="buttons">
            <button type="button" class={running ? "button" : "button main"} onClick={() => (running ? reader.stop() : reader.start(filter.value))}>
              {running ? "Pause" : "Go on"}
            </button>
            <button type="button" class="button" onClick={() => reader.clear()}>
              Clear
            </button>
            <Copy text={() => reader.lines.peek().map((line) => line.text).reverse().join("\n")} label="Copy as JSON" what="all lines" small={false} />
          </div>
        }
      >
        Items as they pass. The flow is never slowed: what comes faster than it can be shown is skipped and counted.
      </PageHead>
      <FilterForm filter={filter.value} points={known.value} look={look} />
      <Lines reader={reader} />
    </>
  );
}

function Lines({ reader }: { reader: TapReader }) {
  const lines = reader.lines.value;
  const note = `${count(lines.length)} of the last ${count(MOST_LINES)}, newest first${reader.missed.value > 0 ? `; ${count(reader.missed.value)} records skipped` : ""}`;
  return (
    <Card title={reader.running.value ? "Live" : "Paused"} note={note} class="tap-card">
      {reader.problem.value !== "" && <p class="say warn">{harmless(reader.problem.value)}</p>}
      {lines.length === 0 ? (
        <Empty title={reader.running.value ? "Nothing has passed yet." : "Nothing was seen."}>Items appear here when they pass the chosen place and match.</Empty>
      ) : (
        <ul class="tap-lines">
          {lines.map((line) => (
            <Line key={line.number} line={line} />
          ))}
        </ul>
      )}
    </Card>
  );
}
