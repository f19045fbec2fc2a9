// The last refused requests: who, what, why; dropped items; and dead letters.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { reasonKey } from "../data/counters";
import { poll } from "../data/poll";
import { isIntended, whyDropped, whyRefused } from "../data/reasons";
import { refusalKeys, type RefusedRequest, type Rejections } from "../data/refusals";
import { history, now, part, step } from "../data/store";
import { getJson } from "../data/request";
import type { Books, Counts } from "../data/status";
import { TimeChart } from "../chart/time_chart";
import { bytes } from "../format/bytes";
import { compact, count, plural } from "../format/count";
import { harmless, words } from "../format/text";
import { dateTime, shortTime, utc } from "../format/time";
import { link } from "../router";
import { Card, Empty, PageHead } from "../ui/card";
import { DeadLetters } from "./dead_letters/dead_letters";
import { Dash } from "../ui/dash";
import { FilterBox, matches } from "../ui/filter";
import { Name, Stranger } from "../ui/stranger";
import { Table, type Column } from "../ui/table";

const books = part((status): Books | undefined => status.books, undefined);
const POLL_MS = 2_000;

const COLUMNS: Column<RefusedRequest>[] = [
  { title: "Time", head: true, cell: (request) => <When at={request.at} /> },
  {
    title: "Reason",
    cell: (request) => (
      <span title={request.meaning}>
        {words(request.reason)}
      </span>
    ),
  },
  { title: "Source", cell: (request) => (request.source === "" ? <Dash /> : <a href={link("sources", request.source)}>{request.source}</a>) },
  { title: "Peer", cell: (request) => <Name>{request.peer ?? "–"}</Name> },
  { title: "Tenant", cell: (request) => <Name most={40}>{request.tenant ?? "–"}</Name> },
  { title: "Size", right: true, cell: (request) => (request.bytes === null ? "–" : bytes(request.bytes)) },
  { title: "What", wide: true, cell: (request) => <Stranger text={[request.what, request.detail].filter((text) => text !== null && text !== "").join(": ") || "–"} most={140} /> },
];

function When({ at }: { at: string }) {
  const moment = Date.parse(at);
  if (!Number.isFinite(moment)) return <>–</>;
  return (
    <time dateTime={at} title={`${dateTime(moment)} here, ${utc(moment)}`}>
      {shortTime(moment, now.value)}
    </time>
  );
}

export function Rejects() {
  const filter = useSignal("");
  const answer = useSignal<Rejections | "missing" | undefined>(undefined);
  useEffect(() => {
    const ended = new AbortController();
    const ask = async (): Promise<void> => {
      const asked = await getJson<Rejections>("/console/rejects", ended.signal);
      if (ended.signal.aborted) return;
      if (asked.ok) answer.value = asked.value;
      else if (asked.status === 404) {
        answer.value = "missing";
        ended.abort();
      }
    };
    void poll(ask, POLL_MS, ended.signal);
    return () => ended.abort();
  }, []);
  return (
    <>
      <PageHead title="Rejects" aside={typeof answer.value === "object" && <FilterBox value={filter} label="Filter requests" />}>
        Requests that were refused before anything of them was acknowledged: their clients know, and send them again or mend them.
        Below are items that were acknowledged and that a sink dropped.
      </PageHead>
      <div class="grid">
        <RefusedChart />
        <ReasonsCard told={typeof answer.value === "object" ? answer.value.by_reason : []} />
        <RequestsCard answer={answer.value} filter={filter.value} />
        <DroppedCard />
        <DeadLetters />
      </div>
    </>
  );
}

const readRefused = () => {
  step.value;
  return history.rates(["refused"], now.peek());
};

function RefusedChart() {
  return (
    <Card title="Refused a second" note="last 15 minutes" class="traffic">
      <TimeChart series={[{ label: "refused", color: "bad", kind: "area" }]} read={readRefused} height={170} label="Requests refused a second over the last 15 minutes" format={compact} />
    </Card>
  );
}

/** From the books, which are there in any case; `told` is what the gateway says of the reasons. */
function ReasonsCard({ told }: { told: Rejections["by_reason"] }) {
  step.value;
  const why = (reason: string): string => told.find((one) => one.reason === reason)?.meaning ?? whyRefused(reason);
  const sources = books.value?.sources ?? [];
  const requests = added(sources.map((source) => source.refused));
  const items = added(sources.map((source) => source.items_refused));
  const recent = (reason: string): number => {
    const rates = history.rates([reasonKey(reason)], now.peek()).series[0] ?? [];
    return rates.reduce((total: number, rate) => total + (rate ?? 0) * 5, 0);
  };
  return (
    <Card title="By reason" note="since the start">
      {requests.length === 0 ? (
        <p class="say">No request was refused.</p>
      ) : (
        <dl class="facts">
          {requests.map(([reason, times]) => (
            <div key={reason} title={why(reason)}>
              <dt>{words(reason)}</dt>
              <dd>
                {plural(times, "request")} <small>{compact(recent(reason))} in 15 min</small>
              </dd>
            </div>
          ))}
        </dl>
      )}
      {items.length > 0 && (
        <>
          <p class="say">Refused items of requests that were accepted:</p>
          <dl class="facts">
            {items.map(([reason, times]) => (
              <div key={reason} title={why(reason)}>
                <dt>{words(reason)}</dt>
                <dd>{plural(times, "item")}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </Card>
  );
}

interface Dropped {
  sink: string;
  reason: string;
  items: number;
}

const DROPPED: Column<Dropped>[] = [
  { title: "Sink", head: true, cell: ({ sink }) => <a href={link("sinks", sink)}>{harmless(sink)}</a> },
  { title: "Reason", cell: ({ reason }) => words(reason) },
  { title: "Items", right: true, cell: ({ items, reason }) => <span class={isIntended(reason) ? "dim" : "warn"}>{count(items)}</span> },
  { title: "What that means", wide: true, cell: ({ reason }) => whyDropped(reason) },
];

/** Items that were acknowledged and not delivered, by sink and reason: what nobody asked for first. */
function DroppedCard() {
  const sinks = books.value?.sinks ?? [];
  const rows = sinks.flatMap(({ name, dropped }) => Object.entries(dropped).map(([reason, items = 0]) => ({ sink: name, reason, items })));
  if (rows.length === 0) return null;
  rows.sort((a, b) => Number(isIntended(a.reason)) - Number(isIntended(b.reason)) || b.items - a.items);
  return (
    <Card title="Dropped items" note="since the start" class="wide">
      <Table caption="Dropped items" columns={DROPPED} rows={rows} id={({ sink, reason }) => `${sink} ${reason}`} none="" />
    </Card>
  );
}

/** Counts by reason over all sources, the most frequent reason first. */
function added(all: readonly Counts[]): [string, number][] {
  const sums = new Map<string, number>();
  for (const counts of all) {
    for (const reason in counts) sums.set(reason, (sums.get(reason) ?? 0) + (counts[reason] ?? 0));
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

function RequestsCard({ answer, filter }: { answer: Rejections | "missing" | undefined; filter: string }) {
  if (answer === undefined) return null;
  if (answer === "missing") {
    return (
      <Card title="Last requests" class="wide">
        <Empty title="Not kept by this version.">The counts by reason are above; the log and /metrics have them by source and tenant.</Empty>
      </Card>
    );
  }
  const keys = refusalKeys(answer.requests);
  const shown = answer.requests.filter((request) => matches(filter, request.reason, request.source, request.peer ?? "", request.tenant ?? "", request.what ?? "", request.detail ?? ""));
  return (
    <Card title="Last requests" note={`the last ${count(answer.requests.length)}; a storm of refusals leaves some out`} class="wide">
      <Table caption="Refused requests" columns={COLUMNS} rows={shown} id={(request) => keys.get(request) ?? ""} none={answer.requests.length === 0 ? "Nothing was refused lately." : "No request matches."} />
    </Card>
  );
}
