// Keys: `g` and a letter goes to a page, `?` opens the help, `/` goes to the first filter.
import { signal } from "@preact/signals";
import { session } from "./data/session";
import { status } from "./data/store";
import { PAGES, isShown } from "./pages";
import { go, link } from "./router";
import { theme, type Theme } from "./ui/theme";

export const helpOpen = signal(false);

const AFTER_G_MS = 1_500;

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

export const nextTheme = (now: Theme): Theme => (now === "auto" ? "light" : now === "light" ? "dark" : "auto");

export function listenToKeys(): void {
  let after = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "?") {
      helpOpen.value = !helpOpen.value;
      event.preventDefault();
      return;
    }
    if (helpOpen.value) return;
    const second = event.timeStamp - after < AFTER_G_MS;
    after = -Infinity;
    if (second) {
      const page = PAGES.find((page) => page.key === event.key && isShown(page, status.value, session.value));
      if (page) {
        go(link(page.id));
        event.preventDefault();
      }
      return;
    }
    if (event.key === "g") after = event.timeStamp;
    if (event.key === "t") theme.value = nextTheme(theme.value);
    if (event.key === "/") {
      const filter = document.querySelector<HTMLElement>("main input");
      if (filter) {
        filter.focus();
        event.preventDefault();
      }
    }
  });
}
