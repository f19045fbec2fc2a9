// A text that came from elsewhere: shown as text, cut when it is long, whole on request.
import { useState } from "preact/hooks";
import { cut, harmless } from "../format/text";

export function Stranger({ text, most = 160 }: { text: string; most?: number }) {
  const [whole, show] = useState(false);
  const safe = harmless(text);
  if (safe.length <= most) return <span class="stranger">{safe}</span>;
  return (
    <span class="stranger">
      {whole ? safe : cut(safe, most)}{" "}
      <button type="button" class="link" aria-expanded={whole} onClick={() => show(!whole)}>
        {whole ? "less" : "more"}
      </button>
    </span>
  );
}

/** A name on one line: cut by its place, whole on hover. */
export function Name({ children, most = 64 }: { children: string; most?: number }) {
  const safe = harmless(children);
  return (
    <span class="name" title={safe.length > 24 ? safe : undefined}>
      {cut(safe, most)}
    </span>
  );
}
