// The frame of every page: the way between them, how the gateway is doing, and the page itself.
import { useEffect, useRef } from "preact/hooks";
import { status } from "./data/store";
import { harmless } from "./format/text";
import { PAGES } from "./pages";
import { PageOf } from "./pages/page";
import { route } from "./router";
import { Announcer } from "./shell/announcer";
import { Help } from "./shell/help";
import { Notices } from "./shell/notices";
import { Sidebar } from "./shell/sidebar";

export function App() {
  const { page, name } = route.value;
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);

  useEffect(() => {
    const title = PAGES.find((entry) => entry.id === page)?.title ?? "Not found";
    document.title = harmless(`${name === undefined ? title : `${name} – ${title}`} · tidegate`);
    // The first page is where the browser put the focus; afterwards a reader should hear where they are.
    if (first.current) first.current = false;
    else {
      window.scrollTo(0, 0);
      (main.current?.querySelector<HTMLElement>("h1") ?? main.current)?.focus({ preventScroll: true });
    }
  }, [page, name]);

  return (
    <>
      <a class="skip" href="#content" onClick={(event) => skip(event, main.current)}>
        Skip to the content
      </a>
      <div class="shell">
        <Sidebar />
        <main id="content" tabIndex={-1} ref={main}>
          <Notices />
          {status.value === undefined ? <Waiting /> : <PageOf page={page} name={name} key={`${page}/${name ?? ""}`} />}
        </main>
      </div>
      <Announcer />
      <Help />
    </>
  );
}

/** The address is the route's, so that it must not change. */
function skip(event: Event, main: HTMLElement | null): void {
  event.preventDefault();
  main?.focus();
}

function Waiting() {
  return (
    <div class="waiting">
      <h1 tabIndex={-1}>tidegate</h1>
      <p class="lead">Waiting for the first numbers…</p>
    </div>
  );
}
