// Confirms an order about dead letters, and says what came of it.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { orderLetters, outcomeOf, type LetterAction, type LetterProgress } from "../../data/dead_letters";
import { harmless } from "../../format/text";
import { Field } from "../../ui/field";
import type { SinkLetters } from "./by_sink";

/** An order that is to be confirmed. */
export interface LetterOrder {
  action: LetterAction;
  sink: SinkLetters;
}

const WORDS = {
  resend: {
    title: "Send the letters of %s again?",
    say: "They go to this sink alone, through its pipeline as before, under the tenants that they had. Letters that are rejected again come back with new numbers.",
    button: "Send again",
  },
  discard: {
    title: "Discard the letters of %s?",
    say: "They are neither listed nor sent any more. What they hold was never delivered by this sink.",
    button: "Discard",
  },
};

export function OrderDialog({ order, done, close }: { order: LetterOrder; done: () => void; close: () => void }) {
  const { action, sink } = order;
  const dialog = useRef<HTMLDialogElement>(null);
  const ended = useRef(new AbortController());
  const through = useSignal(sink.through);
  const busy = useSignal(false);
  const progress = useSignal<LetterProgress | undefined>(undefined);
  useEffect(() => {
    dialog.current?.showModal();
    return () => ended.current.abort();
  }, []);
  const follow = async (): Promise<void> => {
    busy.value = true;
    progress.value = undefined;
    const tell = (so_far: LetterProgress): void => void (progress.value = so_far);
    const end = await orderLetters(action, sink.sink, through.peek(), tell, ended.current.signal);
    if (ended.current.signal.aborted) return;
    busy.value = false;
    progress.value = end;
    done();
  };
  const said = progress.value;
  const isDone = !busy.value && said !== undefined && said.why === undefined && (said.kept ?? 0) === 0;
  const isNumber = Number.isInteger(through.value) && through.value >= 1 && through.value <= sink.through;
  const { title, say, button } = WORDS[action];
  return (
    <dialog ref={dialog} class="help reload" aria-labelledby="letters-title" onClose={close}>
      <h2 id="letters-title">{title.replace("%s", () => harmless(sink.sink))}</h2>
      <p class="say">{say}</p>
      {!isDone && (
        <Field label={`Up to number, at most ${sink.through}`}>
          <input type="number" min={1} max={sink.through} value={through.value} disabled={busy.value} aria-invalid={!isNumber} onInput={(event) => (through.value = event.currentTarget.valueAsNumber)} />
        </Field>
      )}
      <div aria-live="polite">
        {busy.value && <p class="say verdict">{said === undefined ? "Working…" : outcomeOf(action, said)}</p>}
        {!busy.value && said !== undefined && <p class={said.why === undefined ? "say verdict good" : "say verdict bad"}>{outcomeOf(action, said)}</p>}
      </div>
      <div class="buttons below">
        {!isDone && (
          <button type="button" class={action === "discard" ? "button danger" : "button main"} disabled={busy.value || !isNumber} onClick={() => void follow()}>
            {button}
          </button>
        )}
        <button type="button" class="button" autofocus onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
