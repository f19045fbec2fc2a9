import { harmless } from "../../format/text";
import { link } from "../../router";
import { severityName, type LogRow } from "../../search/rows";
import { AttributeList } from "../../ui/attributes";
import { Copy } from "../../ui/copy";
import { RowLine } from "./row_line";

/** A log record in a line; whole when it is pressed. */
export function LogLine({ row, narrow, quiet = false }: { row: LogRow; narrow?: (name: string, value: string) => void; quiet?: boolean }) {
  const severity = severityName(row.severity);
  const details = () => (
    <>
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
    </>
  );
  return <RowLine time={row.time} label={severity === "unset" ? "–" : severity} tone={severity} service={quiet ? undefined : row.service} text={row.body ?? row.event_name ?? ""} details={details} />;
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
