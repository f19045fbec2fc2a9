// Tells screen readers the state's word when it changes, and once when the connection is lost or back, and nothing else:
// numbers change every second.
import { useComputed } from "@preact/signals";
import { useRef } from "preact/hooks";
import { connection } from "../data/connection";
import { stale, status } from "../data/store";
import { stateWord } from "../data/state";

export function Announcer() {
  const word = useComputed(() => (status.value ? `The gateway is ${stateWord(status.value.state)}.` : ""));
  return (
    <>
      <p class="unseen" role="status" aria-live="polite">
        {word}
      </p>
      <ConnectionWord />
    </>
  );
}

function ConnectionWord() {
  const wasLost = useRef(false);
  const isLost = useComputed(() => connection.value === "lost" || stale.value !== undefined).value;
  if (isLost) wasLost.current = true;
  const back = wasLost.current ? "The connection to the gateway is back." : "";
  return (
    <p class="unseen" role="status" aria-live="polite">
      {isLost ? "The connection to the gateway is lost. It is tried again." : back}
    </p>
  );
}
