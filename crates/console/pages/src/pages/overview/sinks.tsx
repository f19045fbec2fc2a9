import { useComputed } from "@preact/signals";
import { sinkKey } from "../../data/counters";
import { sinkHealth } from "../../data/health";
import { now, part, rate, status } from "../../data/store";
import type { Sink } from "../../data/status";
import { compact } from "../../format/count";
import { duration } from "../../format/duration";
import { words } from "../../format/text";
import { link } from "../../router";
import { Badge } from "../../ui/badge";
import { Card, Empty } from "../../ui/card";
import { Name, Stranger } from "../../ui/stranger";

const MOST = 12;
const sinks = part((status): readonly Sink[] => status.sinks, []);
const arriving = part((status) => status.journal.items_per_second, null);

/** Each sink in a line; those that need somebody to look come first. */
export function SinksCard() {
  const order = useComputed(() => worstFirst(sinks.value).slice(0, MOST).map((sink) => sink.name).join("\n"));
  const all = sinks.value;
  const names = order.value === "" ? [] : order.value.split("\n");
  return (
    <Card title="Sinks" note={all.length > MOST ? `${MOST} of ${all.length}` : undefined} aside={<a href={link("sinks")}>All sinks</a>} class="sinks-card">
      {all.length === 0 ? (
        <Empty title="No sink is configured.">Data is accepted and stays in the journal until its quota is used up.</Empty>
      ) : (
        <ul class="lines">
          {names.map((name) => (
            <SinkLine key={name} name={name} />
          ))}
        </ul>
      )}
    </Card>
  );
}

const RANK = { bad: 0, warn: 1, good: 2, idle: 3 };

export function worstFirst(sinks: readonly Sink[]): Sink[] {
  const rank = (sink: Sink): number => RANK[sinkHealth(sink, arriving.value, 0).tone];
  return sinks.map((sink, index) => ({ sink, index })).sort((a, b) => rank(a.sink) - rank(b.sink) || a.index - b.index).map(({ sink }) => sink);
}

function SinkLine({ name }: { name: string }) {
  const sink = useComputed(() => status.value?.sinks.find((sink) => sink.name === name)).value;
  if (!sink) return null;
  const health = sinkHealth(sink, arriving.value, now.value);
  const trouble = health.tone === "bad" || health.tone === "warn";
  return (
    <li class={trouble ? `line ${health.tone}` : "line"}>
      <a class="line-name" href={link("sinks", sink.name)}>
        <Name>{sink.name}</Name>
      </a>
      <span class="line-kind">{words(sink.kind)}</span>
      <Badge tone={health.tone}>{health.word}</Badge>
      <span class="line-rate">
        {compact(rate(sinkKey(name, "out")) ?? 0)} <small>items/s</small>
      </span>
      <span class="line-lag">{sink.lag.age_seconds === null ? "no lag" : `${duration(sink.lag.age_seconds)} lag`}</span>
      {trouble && (
        <span class="line-error">
          <Stranger text={health.sentence} />
        </span>
      )}
    </li>
  );
}
