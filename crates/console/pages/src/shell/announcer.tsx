// Tells screen readers the state's word when it changes, and nothing else: numbers change every second.
import { useComputed } from "@preact/signals";
import { status } from "../data/store";
import { stateWord } from "../data/state";

export function Announcer() {
  const word = useComputed(() => (status.value ? `The gateway is ${stateWord(status.value.state)}.` : ""));
  return (
    <p class="unseen" role="status" aria-live="polite">
      {word}
    </p>
  );
}
