import type { Tone } from "../data/health";

/** A dot and a word. The word says what the colour says. */
export function Badge({ tone, children }: { tone: Tone; children: string }) {
  return (
    <span class={`badge ${tone}`}>
      <i class="dot" aria-hidden="true" />
      {children}
    </span>
  );
}
