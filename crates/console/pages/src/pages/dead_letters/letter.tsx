// One dead letter: what the peer said, and the items that it did not take.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { bytes } from "../../format/bytes";
import { count } from "../../format/count";
import { duration } from "../../format/duration";
import { harmless, sentence } from "../../format/text";
import { dateTime } from "../../format/time";
import { search, type LetterAnswer } from "../../search/answer";
import { FAILED, type DeadLetter, type PointRow, type SpanRow } from "../../search/rows";
import { AttributeList } from "../../ui/attributes";
import { Copy } from "../../ui/copy";
import { Facts } from "../../ui/facts";
import { Name } from "../../ui/stranger";
import { Ticked } from "../../ui/ticked";
import { LogLine } from "../search/log_line";
import { Missing } from "../search/outcome";
import { RowLine } from "../search/row_line";
import { SpanDetails } from "../search/span_line";

/** Stays open until `close`. */
export function LetterDrawer({ id, close }: { id: number; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const answer = useSignal<LetterAnswer | undefined>(undefined);
  const failed = useSignal<string | undefined>(undefined);
  useEffect(() => {
    dialog.current?.showModal();
    const ended = new AbortController();
    void search<LetterAnswer>("dead-letter", { id }, ended.signal).then((found) => {
      if (ended.signal.aborted) return;
      if (found.ok) answer.value = found.value;
      else failed.value = found.message;
    });
    return () => ended.abort();
  }, []);
  const found = answer.value;
  return (
    <dialog ref={dialog} class="help drawer" aria-labelledby="letter-title" onClose={close}>
      <header class="card-head">
        <h2 id="letter-title">Dead letter {id}</h2>
        <div class="aside buttons">
          {found?.letter && <Copy text={() => JSON.stringify(found, null, 2)} label="Copy as JSON" what="this letter" />}
          <button type="button" class="small" autofocus onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      </header>
      {failed.value !== undefined && (
        <p class="say bad" role="alert">
          <Ticked>{sentence(harmless(failed.value))}</Ticked>
        </p>
      )}
      {found === undefined && failed.value === undefined && (
        <p class="say" role="status">
          Reading…
        </p>
      )}
      {found?.letter && <About letter={found.letter} />}
      {found?.letter === null && found.incomplete.length === 0 && <p class="say">It is not there any more: it was sent again or discarded, or newer letters took its place.</p>}
      {found && <Missing end={found} />}
      {found && <Items answer={found} />}
    </dialog>
  );
}

function About({ letter }: { letter: DeadLetter }) {
  return (
    <>
      <pre class="body" tabIndex={0} aria-label="What the peer said">
        {harmless(letter.reason)}
      </pre>
      <Facts
        facts={[
          { name: "sink", value: harmless(letter.sink) },
          letter.tenant !== "" && { name: "tenant", value: <Name>{letter.tenant}</Name> },
          { name: "rejected", value: dateTime(Date.parse(letter.time)) },
          { name: "items", value: `${count(letter.items)} of ${letter.signal}` },
          { name: "size", value: `${bytes(letter.bytes)} of ${letter.protocol}` },
        ]}
      />
    </>
  );
}

function Items({ answer: { letter, logs = [], spans = [], points = [], histograms = [], has_more: more, incomplete } }: { answer: LetterAnswer }) {
  const metrics = [...points, ...histograms];
  if (logs.length + spans.length + metrics.length === 0) {
    return letter !== null && incomplete.length === 0 ? <p class="none">It has no items that can be shown.</p> : null;
  }
  return (
    <>
      <ul class="log-lines below">
        {logs.map((row, index) => (
          <LogLine key={`log ${index}`} row={row} />
        ))}
        {spans.map((row, index) => (
          <SpanItem key={`span ${index}`} row={row} />
        ))}
        {metrics.map((row, index) => (
          <PointItem key={`point ${index}`} row={row} />
        ))}
      </ul>
      {more && <p class="more">it has more items than are shown</p>}
    </>
  );
}

function SpanItem({ row }: { row: SpanRow }) {
  const failed = row.status === FAILED;
  const text = `${row.name ?? "(no name)"}, ${duration(row.duration_ns / 1e9)}`;
  return <RowLine time={row.time} label={failed ? "failed" : "–"} tone={failed ? "error" : "unset"} service={row.service} text={text} details={() => <SpanDetails row={{ span: row, logs: [], failed }} />} />;
}

function PointItem({ row }: { row: PointRow }) {
  const details = () => (
    <>
      <div class="detail-links">
        <Copy text={() => JSON.stringify(row, null, 2)} label="Copy as JSON" what="this point" />
      </div>
      {row.cut && <p class="say dim">Texts of this point were too long, and are cut.</p>}
      <AttributeList title="Attributes" attributes={row.attributes} always />
      <AttributeList title="Resource" attributes={row.resource} />
    </>
  );
  return <RowLine time={row.time} label="–" tone="unset" service={row.service} text={textOf(row)} details={details} />;
}

/** A point with its value. */
function textOf({ name, unit, quantile, value, count: values, sum }: PointRow): string {
  const of = typeof quantile === "number" ? `, quantile ${quantile}` : "";
  const what = values === undefined ? String(value ?? "no value") : `${count(values ?? 0)} values, sum ${sum ?? "unknown"}`;
  return `${name ?? ""}${of}: ${what}${unit === null || unit === "" ? "" : ` ${unit}`}`;
}
