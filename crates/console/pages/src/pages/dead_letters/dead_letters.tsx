// Dead letters: what peers rejected for good, with their words, and what can be done about it.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { now, part } from "../../data/store";
import { poll } from "../../data/poll";
import { session } from "../../data/session";
import { bytes } from "../../format/bytes";
import { count, plural } from "../../format/count";
import { harmless, sentence } from "../../format/text";
import { shortTime, utc } from "../../format/time";
import { go, link, route } from "../../router";
import { search, type SearchEnd } from "../../search/answer";
import type { DeadLetter } from "../../search/rows";
import { Card, Empty } from "../../ui/card";
import { Copy } from "../../ui/copy";
import { Name, Stranger } from "../../ui/stranger";
import { Table, type Column } from "../../ui/table";
import { Ticked } from "../../ui/ticked";
import { LettersBySink, type SinkLetters } from "./by_sink";
import { LetterDrawer } from "./letter";
import { OrderDialog, type LetterOrder } from "./order";

interface DeadLetterAnswer extends SearchEnd {
  total: number;
  items: number;
  sinks: SinkLetters[];
  letters: DeadLetter[];
}

/** Items that peers rejected: when there are more, there are more letters. */
const rejected = part((status) => status.books.sinks.reduce((all, sink) => all + (sink.dropped["rejected"] ?? 0), 0), 0);
const OFF = "search is off (`console.search`), or you are neither on this machine nor have credentials";
/** Letters are read from the disk, so they are not asked for with each that comes. */
const POLL_MS = 10_000;

const COLUMNS: Column<DeadLetter>[] = [
  { title: "Number", head: true, cell: ({ id }) => <a href={link("rejects", undefined, { letter: String(id) })} aria-label={`Dead letter ${id}`}>{id}</a> },
  { title: "Time", cell: (letter) => <time title={utc(Date.parse(letter.time))}>{shortTime(Date.parse(letter.time), now.peek())}</time> },
  { title: "Sink", cell: (letter) => <a href={link("sinks", letter.sink)}>{harmless(letter.sink)}</a> },
  { title: "Signal", cell: (letter) => letter.signal },
  { title: "Tenant", cell: (letter) => <Name most={40}>{letter.tenant === "" ? "–" : letter.tenant}</Name> },
  { title: "Items", right: true, cell: (letter) => count(letter.items) },
  { title: "Size", right: true, cell: (letter) => bytes(letter.bytes) },
  { title: "What the peer said", wide: true, cell: (letter) => <Stranger text={letter.reason} most={160} /> },
];

export function DeadLetters() {
  const answer = useSignal<DeadLetterAnswer | undefined>(undefined);
  const failed = useSignal<string | undefined>(undefined);
  const order = useSignal<LetterOrder | undefined>(undefined);
  const asked = useRef(-1);
  const searchable = session.value?.search === true;
  const ask = async (signal?: AbortSignal): Promise<void> => {
    asked.current = rejected.peek();
    const found = await search<DeadLetterAnswer>("dead-letters", {}, signal);
    if (signal?.aborted === true) return;
    failed.value = found.ok ? undefined : found.message;
    if (found.ok) answer.value = found.value;
  };
  useEffect(() => {
    if (!searchable) return;
    const ended = new AbortController();
    const askIfMore = async (): Promise<void> => {
      if (asked.current !== rejected.peek() || answer.peek() === undefined) await ask(ended.signal);
    };
    void poll(askIfMore, POLL_MS, ended.signal);
    return () => ended.abort();
  }, [searchable]);
  const close = (): void => {
    order.value = undefined;
    // The button that opened it may be gone with the sink's letters.
    setTimeout(() => document.activeElement === document.body && document.querySelector<HTMLElement>("main h1")?.focus());
  };
  const opened = Number(route.value.query.get("letter") ?? "");
  const found = answer.value;
  if (session.value?.search === false) return rejected.value > 0 ? <Unseen why={OFF} /> : null;
  const drawer = Number.isSafeInteger(opened) && opened > 0 && <LetterDrawer key={opened} id={opened} close={() => go(link("rejects"))} />;
  if (found === undefined) {
    return (
      <>
        {failed.value !== undefined && <Unseen why={failed.value} />}
        {drawer}
      </>
    );
  }
  return (
    <Card title="Dead letters" note={found.total === 0 ? "" : `${plural(found.total, "letter")}, ${plural(found.items, "item")}`} aside={found.total > 0 && <Commands />} class="wide">
      {failed.value !== undefined && (
        <p class="say bad" role="status">
          <Ticked>{sentence(harmless(failed.value))}</Ticked>
        </p>
      )}
      {found.total === 0 ? (
        <Empty title="No peer has rejected anything that is kept." />
      ) : (
        <>
          <LettersBySink sinks={found.sinks} order={(action, sink) => (order.value = { action, sink })} />
          <div class="below">
            <Table caption="Dead letters" columns={COLUMNS} rows={found.letters} id={(letter) => String(letter.id)} />
          </div>
          {found.has_more && <p class="more">the newest {count(found.letters.length)} are shown</p>}
        </>
      )}
      {drawer}
      {order.value && <OrderDialog order={order.value} done={() => void ask()} close={close} />}
    </Card>
  );
}

/** In the place of letters that this page cannot read. */
function Unseen({ why }: { why: string }) {
  return (
    <Card title="Dead letters" aside={<Commands />} class="wide">
      <p class="say bad">
        <Ticked>{sentence(harmless(why))}</Ticked>
      </p>
      <p class="say">
        <code>tidegate journal dead-letters</code> lists them on the gateway's machine.
      </p>
    </Card>
  );
}

/** On the gateway's machine: they need its data folder, and sending an admin's token where there are credentials. */
function Commands() {
  return (
    <div class="buttons">
      <Copy text="tidegate replay dead-letters" label="Copy: send again" what="the command that sends dead letters again" />
      <Copy text="tidegate journal dead-letters --export letters" label="Copy: export" what="the command that writes dead letters to files" />
      <Copy text="tidegate journal discard --sink NAME" label="Copy: discard" what="the command that discards a sink's dead letters" />
    </div>
  );
}
