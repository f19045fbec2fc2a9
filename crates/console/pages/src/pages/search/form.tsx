// The form of a search. Its values are in the address, so that a search can be shared and the way back leads to the last one.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { go, link, route } from "../../router";
import { search, type ServiceAnswer } from "../../search/answer";
import { iso, isFixed, rangeOf, SPANS, USUAL_SPAN } from "../../search/range";
import { termText } from "../../search/terms";
import { dateTime } from "../../format/time";
import { Field } from "../../ui/field";

export type Draft = Readonly<Record<string, string>>;

/** The values of the address. */
export const draftOf = (query: URLSearchParams): Draft => Object.fromEntries(query);

/** Goes to the same page with other values; empty ones are left out. */
export function searchFor(page: string, draft: Draft): void {
  const kept = Object.entries(draft).filter(([, value]) => value !== "");
  go(link(page, undefined, Object.fromEntries(kept)));
}

/** Adds a condition over an attribute to the search of the page. */
export function narrowBy(page: string): (name: string, value: string) => void {
  return (name, value) => {
    const draft = draftOf(route.peek().query);
    searchFor(page, { ...draft, attributes: `${draft["attributes"] ?? ""} ${termText(name, value)}`.trim() });
  };
}

interface SearchFormProps {
  page: string;
  draft: Signal<Draft>;
  busy: boolean;
  children: ComponentChildren;
}

export function SearchForm({ page, draft, busy, children }: SearchFormProps) {
  const set = (name: string, value: string): void => {
    draft.value = { ...draft.value, [name]: value };
  };
  const fixed = isFixed(new URLSearchParams(draft.value as Record<string, string>));
  const submit = (event: Event): void => {
    event.preventDefault();
    // The same search again is asked again: time has gone on.
    searchFor(page, { ...draft.value, at: String(Date.now()) });
  };
  return (
    <form class="filters search-form" onSubmit={submit}>
      <Field label="Time">
        <select
          value={fixed ? "fixed" : (draft.value["last"] ?? USUAL_SPAN)}
          onChange={(event) => {
            const { from: _from, to: _to, ...rest } = draft.value;
            if (event.currentTarget.value !== "fixed") draft.value = { ...rest, last: event.currentTarget.value };
          }}
        >
          {fixed && <option value="fixed">{fixedLabel(draft.value)}</option>}
          {SPANS.map(([id, title]) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      <ServiceField value={draft.value["service"] ?? ""} set={(value) => set("service", value)} />
      {children}
      <TextField label="Attributes" draft={draft} name="attributes" placeholder="http.route=/cart …" wide />
      <div class="buttons">
        <button type="submit" class="main" disabled={busy}>
          Search
        </button>
      </div>
    </form>
  );
}

function fixedLabel(draft: Draft): string {
  const { from, to } = rangeOf(new URLSearchParams(draft as Record<string, string>), Date.now());
  return `${dateTime(from)} – ${dateTime(to).slice(11)}`;
}

export function TextField({ label, draft, name, placeholder = "", wide = false }: { label: string; draft: Signal<Draft>; name: string; placeholder?: string; wide?: boolean }) {
  return (
    <Field label={label} wide={wide}>
      <input type="text" autocomplete="off" placeholder={placeholder} value={draft.value[name] ?? ""} onInput={(event) => (draft.value = { ...draft.value, [name]: event.currentTarget.value })} />
    </Field>
  );
}

const services = { names: [] as string[], at: 0 };
const SERVICES_FOR_MS = 60_000;

/** The names of services of the last day, offered while typing. */
function ServiceField({ value, set }: { value: string; set: (value: string) => void }) {
  const known = useSignal(services.names);
  useEffect(() => {
    if (Date.now() - services.at < SERVICES_FOR_MS) return;
    services.at = Date.now();
    void search<ServiceAnswer>("services", { from: iso(Date.now() - 86_400_000) }).then((answer) => {
      if (answer.ok && Array.isArray(answer.value.services)) known.value = services.names = answer.value.services;
    });
  }, []);
  return (
    <Field label="Service">
      <input type="text" autocomplete="off" list="services" value={value} onInput={(event) => set(event.currentTarget.value)} />
      <datalist id="services">
        {known.value.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </Field>
  );
}
