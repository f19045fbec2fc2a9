import { useComputed } from "@preact/signals";
import { connection, type Connection } from "../data/connection";
import { versionOf } from "../data/frame";
import { now, status } from "../data/store";
import { duration } from "../format/duration";

const HOW: Readonly<Record<Connection, string>> = {
  starting: "connecting…",
  live: "live",
  polling: "every 2 s",
  lost: "reconnecting…",
};

/** The program, and how its numbers come here. */
export function About() {
  const version = useComputed(() => (status.value ? versionOf(status.value) : ""));
  const up = useComputed(() => (status.value ? uptime(status.value.uptime_seconds) : ""));
  const how = useComputed(() => HOW[connection.value]);
  // For tests, which wait for the next numbers.
  const moment = useComputed(() => String(now.value));
  return (
    <p class="about" data-moment={moment}>
      <span title={version}>{version}</span>
      <span>
        up {up} · {how}
      </span>
    </p>
  );
}

/** By the minute once there is one, so that it does not count under the reader's eyes. */
const uptime = (seconds: number): string => duration(seconds >= 60 ? Math.floor(seconds / 60) * 60 : Math.floor(seconds));
