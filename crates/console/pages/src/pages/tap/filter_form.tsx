import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Field } from "../../ui/field";
import type { TapFilter } from "./reader";

const SIGNALS = ["metrics", "logs", "traces", "profiles"];
const LOOK_AFTER_MS = 400;

/** Where to look, and for what. It looks anew a moment after the last change. */
export function FilterForm({ filter, points, look }: { filter: TapFilter; points: string[]; look: (filter: TapFilter) => void }) {
  const draft = useSignal(filter);
  const { value } = draft;
  useEffect(() => {
    if (value === filter) return;
    const timer = setTimeout(() => look(value), LOOK_AFTER_MS);
    return () => clearTimeout(timer);
  }, [value]);
  const set = (change: Partial<TapFilter>): void => {
    draft.value = { ...draft.value, ...change };
  };
  const known = points.includes(value.point) || value.point.endsWith(":*") ? points : [value.point, ...points];
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <Field label="At">
        <select value={value.point} onChange={(event) => set({ point: event.currentTarget.value })}>
          <option value="source:*">all sources</option>
          <option value="sink:*">all sinks</option>
          {known.map((point) => (
            <option key={point} value={point}>
              {point.replace(":", " ")}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Signal">
        <select value={value.signal} onChange={(event) => set({ signal: event.currentTarget.value })}>
          <option value="">any</option>
          {SIGNALS.map((signal) => (
            <option key={signal}>{signal}</option>
          ))}
        </select>
      </Field>
      <Field label="Service">
        <input type="text" autocomplete="off" value={value.service} onInput={(event) => set({ service: event.currentTarget.value })} />
      </Field>
      <Field label="Name">
        <input type="text" autocomplete="off" value={value.name} onInput={(event) => set({ name: event.currentTarget.value })} />
      </Field>
      <Field label="Contains">
        <input type="text" autocomplete="off" value={value.contains} onInput={(event) => set({ contains: event.currentTarget.value })} />
      </Field>
      <Field label="One in">
        <select value={value.every} onChange={(event) => set({ every: event.currentTarget.value })}>
          {["1", "10", "100", "1000"].map((every) => (
            <option key={every} value={every}>
              {every === "1" ? "1 (all)" : every}
            </option>
          ))}
        </select>
      </Field>
    </form>
  );
}
