import { useComputed, useSignal } from "@preact/signals";
import { sinkHealth } from "../data/health";
import { session } from "../data/session";
import { stateTone, stateWord } from "../data/state";
import { now, status } from "../data/store";
import { PAGES, isShown, type PageEntry } from "../pages";
import { link, route } from "../router";
import { helpOpen, nextTheme } from "../shortcuts";
import { Icon } from "../ui/icons";
import { Logo } from "../ui/logo";
import { theme } from "../ui/theme";
import { About } from "./about";

const GROUPS: [PageEntry["group"], string][] = [
  ["now", "Now"],
  ["data", "Data"],
  ["operate", "Operate"],
];

export function Sidebar() {
  const open = useSignal(false);
  return (
    <header class="sidebar">
      <div class="brand">
        <a class="home" href={link("overview")}>
          <Logo />
          <span>tidegate</span>
        </a>
        <StateChip />
        <button type="button" class="menu" aria-expanded={open.value} aria-controls="pages" aria-label="Pages" onClick={() => (open.value = !open.value)}>
          <Icon name="menu" />
        </button>
      </div>
      <div id="pages" class={open.value ? "pages open" : "pages"} onClick={(event) => event.target instanceof Element && event.target.closest("a") && (open.value = false)}>
        <nav aria-label="Pages">
          {GROUPS.map(([group, title]) => (
            <Group key={group} group={group} title={title} />
          ))}
        </nav>
        <div class="tools">
          <ThemeButton />
          <button type="button" class="quiet" onClick={() => (helpOpen.value = true)}>
            <kbd>?</kbd> Keys
          </button>
        </div>
        <About />
      </div>
    </header>
  );
}

function StateChip() {
  const state = useComputed(() => status.value?.state);
  if (state.value === undefined) return null;
  return (
    <a class={`chip ${stateTone(state.value)}`} href={link("overview")}>
      <i class="dot" aria-hidden="true" />
      {stateWord(state.value)}
    </a>
  );
}

function Group({ group, title }: { group: PageEntry["group"]; title: string }) {
  const shown = useComputed(() => PAGES.filter((page) => page.group === group && isShown(page, status.value, session.value)).map((page) => page.id).join(" "));
  const ids = shown.value.split(" ");
  return (
    <ul aria-label={title}>
      {PAGES.filter((page) => ids.includes(page.id)).map((page) => (
        <li key={page.id}>
          <a href={link(page.id)} aria-current={route.value.page === page.id ? "page" : undefined}>
            <Icon name={page.id} />
            <span>{page.title}</span>
            {page.id === "sinks" && <InTrouble />}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** How many sinks need somebody to look. */
function InTrouble() {
  const tones = useComputed(() => {
    const all = status.value;
    const found = (all?.sinks ?? []).map((sink) => sinkHealth(sink, all?.journal.items_per_second ?? null, now.value).tone);
    return found.filter((tone) => tone === "warn" || tone === "bad").sort().join(" ");
  });
  if (tones.value === "") return null;
  const all = tones.value.split(" ");
  return (
    <span class={`count ${all[0] ?? ""}`}>
      {all.length}
      <span class="unseen"> in trouble</span>
    </span>
  );
}

const THEMES = { auto: "Colours of the system", light: "Light", dark: "Dark" };

function ThemeButton() {
  return (
    <button type="button" class="quiet" aria-label={`Colours: ${THEMES[theme.value]}`} onClick={() => (theme.value = nextTheme(theme.value))}>
      <Icon name={theme.value} />
      {theme.value === "auto" ? "System" : THEMES[theme.value]}
    </button>
  );
}
