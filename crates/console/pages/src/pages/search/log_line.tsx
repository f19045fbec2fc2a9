import { useState } from "preact/hooks";
import { now } from "../../data/store";
import { cut, harmless } from "../../format/text";
import { clockMs, dateTime, utc } from "../../format/time";
import { link } from "../../router";
import { severityName, type LogRow } from "../../search/rows";
import { AttributeList } from "../../ui/attributes";
import { Copy } from "../../ui/copy";

const DAY_MS = 86_400_000;

/** A log record in a line; whole when it is pressed. */
export function LogLine({ row, narrow, quiet = false }: { row: LogRow; narrow?: (name: string, value: string) => void; quiet?: boolean }) {
  const [open, setOpen] = useState(false);
  const severity = severityName(row.severity);
  const at = Date.parse(row.time);
  const old = Math.abs(now.peek() - at) > DAY_MS;
  return (
    <li class="log-line">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <time dateTime={row.time} title={Number.isFinite(at) ? utc(at) : ""}>
          {Number.isFinite(at) ? (old ? dateTime(at) : clockMs(at)) : row.time}
        </time>
        <span class={`severity ${severity}`}>{severity === "unset" ? "–" : severity}</span>
        {!quiet && <span class="log-service">{cut(harmless(row.service), 48)}</span>}
        <span class="log-body">{cut(harmless(row.body ?? row.event_name ?? ""), 400)}</span>
      </button>
      {open && (
        <div class="details">
          <pre class="body" tabIndex={0}>
            {harmless(row.body_is_json ? pretty(row.body ?? "") : (row.body ?? ""))}
          </pre>
          {row.cut && <p class="say dim">Texts of this record were too long, and are cut.</p>}
          <div class="detail-links">
            {row.trace_id !== null && !quiet && <a href={link("traces", row.trace_id, { around: row.time })}>Its trace</a>}
            <span class="dim">from the {row.from}</span>
            <Copy text={() => JSON.stringify(row, null, 2)} label="Copy as JSON" what="this record" />
          </div>
          <AttributeList title="Attributes" attributes={row.attributes} narrow={narrow} />
          <AttributeList title="Resource" attributes={row.resource} narrow={narrow} />
        </div>
      )}
    </li>
  );
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
