import type { Signal } from "@preact/signals";

/** A field that narrows a list down. */
export function FilterBox({ value, label }: { value: Signal<string>; label: string }) {
  return <input class="filter" type="search" placeholder={label} aria-label={label} value={value} onInput={(event) => (value.value = event.currentTarget.value)} />;
}

/** Whether one of the texts has what is looked for. */
export const matches = (filter: string, ...texts: string[]): boolean => {
  const wanted = filter.trim().toLowerCase();
  return wanted === "" || texts.some((text) => text.toLowerCase().includes(wanted));
};
