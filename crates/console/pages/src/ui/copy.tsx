import { useState } from "preact/hooks";

/** Puts a text on the clipboard; says so where it was pressed. */
export function Copy({ text, label = "Copy", what, small = true }: { text: string | (() => string); label?: string; what: string; small?: boolean }) {
  const [said, say] = useState<string | undefined>(undefined);
  const copy = async (): Promise<void> => {
    const value = typeof text === "string" ? text : text();
    const done = await write(value);
    say(done ? "Copied" : "Not allowed");
    setTimeout(() => say(undefined), 1_500);
  };
  return (
    <button type="button" class={small ? "small" : "button"} aria-label={said ?? `${label}: ${what}`} onClick={() => void copy()}>
      {said ?? label}
    </button>
  );
}

async function write(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return writeByHand(text);
  }
}

/** Where the page is not of a secure origin, as at an address of a private network. */
function writeByHand(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
