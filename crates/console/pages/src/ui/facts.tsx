import type { ComponentChildren } from "preact";

export interface Fact {
  name: string;
  value: ComponentChildren;
  tone?: "warn" | "bad" | "good" | "dim" | undefined;
}

/** Names and values. */
export function Facts({ facts }: { facts: (Fact | false | undefined)[] }) {
  return (
    <dl class="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact.name}>
              <dt>{fact.name}</dt>
              <dd class={fact.tone ?? ""}>{fact.value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
