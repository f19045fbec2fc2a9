import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { postAsSession } from "../../data/session";
import { harmless } from "../../format/text";
import { Verdict, type Report } from "./report";

/** Has the gateway read its file again, once the one who presses it has confirmed it. */
export function ReloadButton({ done }: { done: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const said = useSignal<Report | string | undefined>(undefined);
  const busy = useSignal(false);
  const reload = async (): Promise<void> => {
    busy.value = true;
    const answer = await postAsSession<Report>("/console/reload", "", "text/plain");
    busy.value = false;
    if (answer.ok) said.value = answer.value;
    else said.value = answer.status === 404 ? "This version is reloaded by a signal: SIGHUP." : answer.message;
    if (answer.ok && answer.value.ok) done();
  };
  return (
    <>
      <button type="button" class="button" onClick={() => ((said.value = undefined), dialog.current?.showModal())}>
        Reload the file
      </button>
      <dialog ref={dialog} class="help reload" aria-labelledby="reload-title">
        <h2 id="reload-title">Reload the file?</h2>
        <p class="say">The gateway reads its configuration again and applies what a reload can apply. With an error in it, the old one stays.</p>
        <div aria-live="polite">{typeof said.value === "string" ? <p class="say bad">{harmless(said.value)}</p> : said.value && <Verdict report={said.value} reloaded={said.value.ok} />}</div>
        <div class="buttons">
          <button type="button" class="button main" disabled={busy} onClick={() => void reload()}>
            Reload
          </button>
          <button type="button" class="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      </dialog>
    </>
  );
}
