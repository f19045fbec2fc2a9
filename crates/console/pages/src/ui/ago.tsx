import { now } from "../data/store";
import { ago } from "../format/duration";
import { dateTime, utc } from "../format/time";
import { Dash } from "./dash";

/** `3 min ago`; the time here and in UTC on hover. */
export function Ago({ at }: { at: string | null }) {
  const moment = Date.parse(at ?? "");
  if (!Number.isFinite(moment)) return <Dash />;
  return (
    <time dateTime={at ?? ""} title={`${dateTime(moment)} here, ${utc(moment)}`}>
      {ago(moment, now.value)}
    </time>
  );
}
