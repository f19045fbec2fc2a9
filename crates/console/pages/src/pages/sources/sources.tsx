import { sourceKey, sum } from "../../data/counters";
import { mostly, refusedSoFar, sourceHealth } from "../../data/health";
import { part, rate } from "../../data/store";
import type { Handshakes, SourceBook } from "../../data/status";
import { bytes } from "../../format/bytes";
import { compact, count, plural } from "../../format/count";
import { words } from "../../format/text";
import { link } from "../../router";
import { Badge } from "../../ui/badge";
import { Card, PageHead } from "../../ui/card";
import { Name } from "../../ui/stranger";
import { Ticked } from "../../ui/ticked";
import { Table, type Column } from "../../ui/table";
import { DestinationCard } from "./destination";

const sources = part((status): readonly SourceBook[] => status.books.sources, []);
const handshakes = part((status): Handshakes | undefined => status.handshakes, undefined);
const memory = part((status) => [status.memory.connections_open, status.memory.connections_limit] as const, [0, 0] as const);

/** What a source refuses now, a second. */
export const refusing = (name: string) => ({ requests: rate(sourceKey(name, "refused")), items: rate(sourceKey(name, "items_refused")) });

const COLUMNS: Column<SourceBook>[] = [
  {
    title: "Source",
    head: true,
    cell: (source) => (
      <a href={link("sources", source.name)}>
        <Name>{source.name}</Name>
      </a>
    ),
  },
  { title: "State", cell: state },
  { title: "In", right: true, cell: (source) => `${compact(rate(sourceKey(source.name, "items")) ?? 0)}/s` },
  { title: "Items", right: true, cell: itemsOf },
  { title: "Requests", right: true, cell: (source) => count(source.received) },
  { title: "Bytes", right: true, cell: (source) => bytes(source.bytes) },
  { title: "Open", right: true, cell: (source) => count(source.open) },
  { title: "Refused", right: true, cell: (source) => <Refused source={source} /> },
];

function state(source: SourceBook) {
  const health = sourceHealth(source, refusing(source.name));
  return <Badge tone={health.tone}>{health.word}</Badge>;
}

function itemsOf(source: SourceBook) {
  const parts = Object.entries(source.items);
  return (
    <>
      {count(sum(source.items) + source.forwarded)}
      {parts.length > 1 && <div class="sub">{parts.map(([signal, items]) => `${compact(items)} ${signal}`).join(", ")}</div>}
    </>
  );
}

function Refused({ source }: { source: SourceBook }) {
  const refused = refusedSoFar(source);
  if (refused === "") return <span class="dim">0</span>;
  return (
    <>
      <span class="warn">{refused}</span>
      <div class="sub">mostly {words(mostly(source))}</div>
    </>
  );
}

export function Sources() {
  const [open, limit] = memory.value;
  return (
    <>
      <PageHead title="Sources">Every refusal is an answer: the protocol's own retryable status, a reason in words, and a computed delay.</PageHead>
      <Card title={plural(sources.value.length, "source")} note={`${count(open)} of ${count(limit)} connections open`}>
        <Table caption="Sources" columns={COLUMNS} rows={sources.value} id={(source) => source.name} none="No source is configured." />
      </Card>
      <DestinationCard />
      {handshakes.value && <HandshakesCard handshakes={handshakes.value} />}
    </>
  );
}

function HandshakesCard({ handshakes }: { handshakes: Handshakes }) {
  const failed = handshakes.failed.reduce((all, one) => all + one.count, 0);
  return (
    <Card title="TLS" note={`${count(handshakes.done)} handshakes became connections, ${count(failed)} did not`}>
      {failed > 0 && (
        <Table
          caption="Failed TLS handshakes"
          columns={[
            { title: "Reason", head: true, cell: (one) => words(one.reason) },
            { title: "Failed", right: true, cell: (one) => count(one.count) },
            { title: "What to do", wide: true, cell: (one) => <Ticked>{one.advice}</Ticked> },
          ]}
          rows={handshakes.failed}
          id={(one) => one.reason}
        />
      )}
    </Card>
  );
}
