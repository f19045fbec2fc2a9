import type { ComponentChildren } from "preact";

/** A control with its name. */
export function Field({ label, children, wide = false }: { label: string; children: ComponentChildren; wide?: boolean }) {
  return (
    <label class={wide ? "field wide-field" : "field"}>
      <span>{label}</span>
      {children}
    </label>
  );
}
