// What concerns the page itself: old numbers, a new version.
import { useComputed } from "@preact/signals";
import { connection, streamRefused } from "../data/connection";
import { firstVersion, newestVersion, stale, status } from "../data/store";
import { duration } from "../format/duration";

export function Notices() {
  return (
    <>
      <Stale />
      <NoStream />
      <NewVersion />
    </>
  );
}

function Stale() {
  const text = useComputed(() => {
    const age = stale.value;
    if (age !== undefined) return `Reconnecting… These numbers are ${duration(age)} old.`;
    return status.value === undefined && connection.value === "lost" ? "The gateway does not answer. Trying again…" : "";
  });
  return text.value === "" ? null : <p class="notice warn">{text}</p>;
}

function NoStream() {
  const refused = useComputed(() => connection.value === "polling" && streamRefused.value);
  return refused.value ? <p class="notice">Too many pages are open, or the stream is unavailable: this page asks every two seconds instead.</p> : null;
}

function NewVersion() {
  const version = newestVersion.value;
  if (version === firstVersion.value) return null;
  return (
    <p class="notice">
      The gateway is now version {version}.{" "}
      <button type="button" class="link" onClick={() => location.reload()}>
        Reload this page
      </button>
    </p>
  );
}
