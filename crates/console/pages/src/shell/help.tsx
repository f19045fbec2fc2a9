import { useEffect, useRef } from "preact/hooks";
import { session } from "../data/session";
import { status } from "../data/store";
import { PAGES, isShown } from "../pages";
import { helpOpen } from "../shortcuts";

/** The keys, in a dialog. */
export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open && dialog.current?.open) dialog.current.close();
  }, [open]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={() => (helpOpen.value = false)}>
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {PAGES.filter((page) => isShown(page, status.value, session.value)).map((page) => (
          <div key={page.id}>
            <dt>
              <kbd>g</kbd> <kbd>{page.key}</kbd>
            </dt>
            <dd>{page.title}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>To the filter of the page</dd>
        </div>
        <div>
          <dt>
            <kbd>←</kbd> <kbd>→</kbd>
          </dt>
          <dd>The moment of a chart, when it has the focus</dd>
        </div>
        <div>
          <dt>
            <kbd>t</kbd>
          </dt>
          <dd>Light, dark, or as the system</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>This help</dd>
        </div>
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
