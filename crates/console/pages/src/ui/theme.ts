// Dark or light: as the system says, or as chosen here.
import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const KEY = "tidegate-theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

export const theme = signal<Theme>(stored());
/** Changes with every change of colours, also with the system's. */
export const scheme = signal(0);

export function applyTheme(): void {
  effect(() => {
    const chosen = theme.value;
    if (chosen === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = chosen;
    try {
      if (chosen === "auto") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, chosen);
    } catch {
      // Without storage the choice holds until the page is left.
    }
    scheme.value = scheme.peek() + 1;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => scheme.value++);
}

/** A colour of the style sheet as it is now, for what is drawn on a canvas. */
export function color(name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
