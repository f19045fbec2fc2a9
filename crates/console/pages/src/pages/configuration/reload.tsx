import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { postJson } from "../../data/request";
import { session } from "../../data/session";
import { harmless } from "../../format/text";

/** Has the gateway read its file again, once the one who presses it has confirmed it. */
export function ReloadButton({ done }: { done: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const said = useSignal<{ ok: boolean; text: string } | undefined>(undefined);
  const busy = useSignal(false);
  const reload = async (): Promise<void> => {
    busy.value = true;
    const answer = await postJson<{ ok: boolean; message: string }>("/console/reload", "", "text/plain", session.value?.token ?? "");
    busy.value = false;
    if (answer.ok) said.value = { ok: answer.value.ok, text: answer.value.message };
    else said.value = { ok: false, text: answer.status === 404 ? "This version is reloaded by a signal: SIGHUP." : answer.message };
    if (answer.ok && answer.value.ok) done();
  };
  return (
    <>
      <button type="button" class="button" onClick={() => ((said.value = undefined), dialog.current?.showModal())}>
        Reload the file
      </button>
      <dialog ref={dialog} class="help" aria-labelledby="reload-title">
        <h2 id="reload-title">Reload the file?</h2>
        <p class="say">The gateway reads its configuration again and applies what a reload can apply. With an error in it, the old one stays.</p>
        <div aria-live="polite">{said.value && <p class={said.value.ok ? "say" : "say bad"}>{harmless(said.value.text)}</p>}</div>
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
