// What concerns the page itself: old numbers, a new version.
import { useComputed } from "@preact/signals";
import { connection } from "../data/connection";
import { firstVersion, stale, status, versionOf } from "../data/store";
import { duration } from "../format/duration";

export function Notices() {
  return (
    <>
      <Stale />
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

function NewVersion() {
  const version = useComputed(() => (status.value ? versionOf(status.value) : undefined));
  if (version.value === undefined || version.value === firstVersion.value) return null;
  return (
    <p class="notice">
      The gateway is now version {version.value}.{" "}
      <button type="button" class="link" onClick={() => location.reload()}>
        Reload this page
      </button>
    </p>
  );
}
