import { harmless } from "../format/text";
import { Stranger } from "./stranger";

interface AttributesProps {
  title: string;
  attributes: Readonly<Record<string, unknown>> | null;
  /** Narrows a search down to a value. */
  narrow?: ((name: string, value: string) => void) | undefined;
  /** Whether the title stays where there are no attributes. */
  always?: boolean;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value) ?? "");

/** Names and values of strangers. */
export function AttributeList({ title, attributes, narrow, always = false }: AttributesProps) {
  const all = Object.entries(attributes ?? {});
  if (all.length === 0 && !always) return null;
  return (
    <div class="attributes">
      <h3>{title}</h3>
      <dl>
        {all.map(([name, value]) => (
          <div key={name}>
            <dt>{harmless(name)}</dt>
            <dd>
              <Stranger text={textOf(value)} most={300} />
              {narrow && typeof value !== "object" && (
                <button type="button" class="link narrow" aria-label={`Only with ${name}=${textOf(value)}`} title="Only with this value" onClick={() => narrow(name, textOf(value))}>
                  +
                </button>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
