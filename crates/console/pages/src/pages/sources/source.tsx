import { useComputed } from "@preact/signals";
import { sourceKey, sum } from "../../data/counters";
import { sourceHealth } from "../../data/health";
import { whyRefused } from "../../data/reasons";
import { rate, status } from "../../data/store";
import type { SourceBook } from "../../data/status";
import { bytes } from "../../format/bytes";
import { compact, count, plural } from "../../format/count";
import { harmless, sentence, words } from "../../format/text";
import { link } from "../../router";
import { Card, Empty, PageHead } from "../../ui/card";
import { EquationLine } from "../../ui/equation";
import { Facts } from "../../ui/facts";
import { HeadAside } from "../../ui/head_aside";
import { RateChart } from "../../ui/rate_chart";
import { ReasonTable } from "../../ui/reasons";
import { Steps } from "../../ui/steps";
import { refusing } from "./sources";

export function SourcePage({ name }: { name: string }) {
  const source = useComputed(() => status.value?.books.sources.find((source) => source.name === name)).value;
  const pipeline = useComputed(() => status.value?.source_pipelines?.find((pipeline) => pipeline.source === name)).value;
  if (!source) {
    return (
      <>
        <PageHead title="Source" />
        <Empty title={`There is no source “${harmless(name)}”.`}>
          <a href={link("sources")}>All sources</a>
        </Empty>
      </>
    );
  }
  const health = sourceHealth(source, refusing(name));
  return (
    <>
      <p class="back">
        <a href={link("sources")}>← Sources</a>
      </p>
      <PageHead title={<span class="cut">{harmless(source.name)}</span>} aside={<HeadAside tone={health.tone} word={health.word} point={`source:${source.name}`} />}>
        {sentence(health.sentence)}.
      </PageHead>
      <div class="grid">
        <RateChart
          title="Received"
          series={[{ label: "items", color: "accent", kind: "area" }, { label: "refused requests", color: "bad", kind: "bars" }]}
          keys={[sourceKey(name, "items"), sourceKey(name, "refused")]}
          note={`${compact(rate(sourceKey(name, "items")) ?? 0)} items/s, ${bytes(rate(sourceKey(name, "bytes")) ?? 0)}/s`}
          label={`Items a second that ${name} received, and requests a second that it refused, over the last 15 minutes`}
        />
        <NumbersCard source={source} />
        <BooksCard source={source} />
        {pipeline && (
          <Card title="Pipeline" class="wide">
            <Steps steps={pipeline.steps} />
          </Card>
        )}
      </div>
    </>
  );
}

function NumbersCard({ source }: { source: SourceBook }) {
  return (
    <Card title="Numbers">
      <Facts
        facts={[
          { name: "requests", value: `${compact(rate(sourceKey(source.name, "requests")) ?? 0)}/s, ${count(source.received)} since the start` },
          { name: "open", value: count(source.open) },
          { name: "bytes", value: bytes(source.bytes) },
          ...Object.entries(source.items).map(([signal, items]) => ({ name: signal, value: plural(items, "item") })),
          sum(source.items_refused) > 0 && { name: "refused items", value: `${count(sum(source.items_refused))}, ${compact(rate(sourceKey(source.name, "items_refused")) ?? 0)}/s`, tone: "warn" },
          source.forwarded > 0 && { name: "forwarded", value: `${plural(source.forwarded, "item")}, ${count(source.forwarded_open)} without an answer yet` },
          ...Object.entries(source.forwarded_fates).map(([fate, items]) => ({ name: words(fate), value: plural(items, "item") })),
        ]}
      />
    </Card>
  );
}

function BooksCard({ source }: { source: SourceBook }) {
  const { pipeline } = source;
  return (
    <Card title="Books" class="wide">
      <ul class="equations">
        <EquationLine
          equation={{ name: "Requests", left: [["received", source.received]], right: [["accepted", source.accepted], ["refused", sum(source.refused)], ["open", source.open]], difference: source.difference }}
        />
        {pipeline && (
          <EquationLine
            equation={{ name: "Pipeline", left: [["received", pipeline.received]], right: [["accepted", pipeline.accepted], ["filtered", pipeline.filtered], ["sampled out", pipeline.sampled_out]], difference: pipeline.difference }}
          />
        )}
      </ul>
      {sum(source.refused) > 0 && <ReasonTable title="Requests refused" counts={source.refused} why={whyRefused} />}
      {sum(source.items_refused) > 0 && <ReasonTable title="Items refused" counts={source.items_refused} why={whyRefused} />}
    </Card>
  );
}
