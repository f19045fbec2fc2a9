/** One of a few, side by side. */
export function Choice<T extends string>({ label, options, value, choose }: { label: string; options: readonly (readonly [T, string])[]; value: T; choose: (value: T) => void }) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([id, title]) => (
        <button key={id} type="button" aria-pressed={id === value} onClick={() => choose(id)}>
          {title}
        </button>
      ))}
    </div>
  );
}
