// One sink: how it is doing, what it sent over the last minutes, and everything that is known of it.
import { useComputed } from "@preact/signals";
import { items } from "../../data/books";
import { sinkKey, sum } from "../../data/counters";
import { inFlight, lateBy, sinkHealth } from "../../data/health";
import { isIntended, whyDropped } from "../../data/reasons";
import { now, rate, status } from "../../data/store";
import type { Sink } from "../../data/status";
import { bytes } from "../../format/bytes";
import { compact, count, plural } from "../../format/count";
import { duration } from "../../format/duration";
import { harmless, sentence, words } from "../../format/text";
import { link } from "../../router";
import { Ago } from "../../ui/ago";
import { Card, Empty, PageHead } from "../../ui/card";
import { EquationLine } from "../../ui/equation";
import { Facts } from "../../ui/facts";
import { HeadAside } from "../../ui/head_aside";
import { RateChart } from "../../ui/rate_chart";
import { ReasonTable } from "../../ui/reasons";
import { Steps } from "../../ui/steps";
import { Stranger } from "../../ui/stranger";
import { MembersCard } from "./members";
import { SamplingCard } from "./sampling";

export function SinkPage({ name }: { name: string }) {
  const sink = useComputed(() => status.value?.sinks.find((sink) => sink.name === name)).value;
  const book = useComputed(() => status.value?.books.sinks.find((sink) => sink.name === name)).value;
  if (!sink) return <Missing name={name} />;
  return (
    <>
      <p class="back">
        <a href={link("sinks")}>← Sinks</a>
      </p>
      <SinkHead sink={sink} />
      <div class="grid">
        <RateChart
          title="Delivered"
          series={[{ label: "delivered", color: "accent", kind: "area" }, { label: "dropped", color: "bad", kind: "bars" }]}
          keys={[sinkKey(name, "out"), sinkKey(name, "dropped")]}
          note={`${compact(rate(sinkKey(name, "out")) ?? 0)} items/s, ${bytes(rate(sinkKey(name, "bytes")) ?? 0)}/s`}
          label={`Items a second that ${name} delivered and dropped, over the last 15 minutes`}
        />
        <NumbersCard sink={sink} />
        {book && (
          <Card title="Books" class="wide" note={book.replayed > 0 ? `${plural(book.replayed, "item")} of these ${book.replayed === 1 ? "was" : "were"} replayed` : undefined}>
            <ul class="equations">
              <EquationLine equation={{ ...items(book), name: "Items" }} />
            </ul>
            {sum(sink.dropped) > 0 && <ReasonTable title="Dropped" counts={sink.dropped} why={whyDropped} quiet={isIntended} />}
          </Card>
        )}
        <BlockedCard sink={sink} />
        <MembersCard sink={sink} />
        <SamplingCard sampling={sink.sampling} />
        {sink.pipeline.length > 0 && (
          <Card title="Pipeline" class="wide">
            <Steps steps={sink.pipeline} leftOut={sink.pipeline_left_out ?? 0} />
          </Card>
        )}
      </div>
    </>
  );
}

function Missing({ name }: { name: string }) {
  return (
    <>
      <PageHead title="Sink" />
      <Empty title={`There is no sink “${harmless(name)}”.`}>
        It may have been removed from the configuration. <a href={link("sinks")}>All sinks</a>
      </Empty>
    </>
  );
}

function SinkHead({ sink }: { sink: Sink }) {
  const health = sinkHealth(sink, status.value?.journal.items_per_second ?? null, now.value);
  return (
    <PageHead title={<span class="cut">{harmless(sink.name)}</span>} aside={<HeadAside tone={health.tone} word={health.word} point={`sink:${sink.name}`} />}>
      {words(sink.kind)} → <span class="target">{harmless(sink.target)}</span>
      {(health.tone === "bad" || health.tone === "warn") && (
        <span class={`says ${health.tone}`}>
          <Stranger text={`${sentence(health.sentence)}.`} most={400} />
        </span>
      )}
    </PageHead>
  );
}

function NumbersCard({ sink }: { sink: Sink }) {
  const late = lateBy(sink) !== undefined;
  const { lag } = sink;
  return (
    <Card title="Numbers">
      <Facts
        facts={[
          { name: "lag", tone: late ? "warn" : undefined, value: lag.age_seconds === null ? "none" : `${duration(lag.age_seconds)}: ${plural(lag.items, "item")}, ${bytes(lag.bytes)}` },
          { name: "usual lag", value: duration(sink.usual_lag_seconds) },
          { name: "in flight", value: inFlight(sink) },
          { name: "requests", value: `${count(sink.requests)} done with ${bytes(sink.bytes)}` },
          { name: "failures", value: count(sink.failures), tone: sink.retry_at === null ? undefined : "bad" },
          { name: "sent again", value: plural(sink.resent, "item") },
          { name: "last success", value: <Ago at={sink.last_success} /> },
          sink.retry_at !== null && { name: "next attempt", value: <Ago at={sink.retry_at} /> },
          sink.restarts > 0 && { name: "restarts", value: count(sink.restarts), tone: sink.broken ? "bad" : undefined },
          { name: "cursor", value: count(sink.cursor) },
        ]}
      />
      {sink.last_error !== null && (
        <div class={sink.retry_at !== null || sink.broken ? "error-box bad" : "error-box"}>
          <h3>
            Last error, <Ago at={sink.last_error.at} />
            {sink.retry_at === null && !sink.broken && ", over by now"}
          </h3>
          <p>
            <Stranger text={sink.last_error.message} most={600} />
          </p>
        </div>
      )}
    </Card>
  );
}

function BlockedCard({ sink }: { sink: Sink }) {
  if (sink.waiting.length === 0) return null;
  return (
    <Card title="Unavailable indexes" class="wide">
      <p class="say">These accept nothing now. What waits for them is kept; the rest of the sink's data is delivered.</p>
      <ul class="plain">
        {sink.waiting.map((index) => (
          <li key={index.index}>
            <b>{harmless(index.index)}</b>: {plural(index.documents, "document")} of {plural(index.records, "record")}, since <Ago at={index.since} />: <Stranger text={index.reason} />
          </li>
        ))}
      </ul>
    </Card>
  );
}
