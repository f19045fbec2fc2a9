// Parts of a whole, one behind the other, with marks on the same scale.

export interface BarPart {
  name: string;
  part: number;
  /** A colour of the style sheet. */
  color: string;
}

export interface BarMark {
  name: string;
  part: number;
  kind: "now" | "peak";
}

/** `part`s are from 0 to 1. The numbers must be in words beside it. */
export function StackedBar({ parts, marks = [], label }: { parts: BarPart[]; marks?: BarMark[]; label: string }) {
  return (
    <div class="bar" role="img" aria-label={label}>
      <div class="bar-parts">
        {parts.map((part) => (
          <i key={part.name} class={part.color} style={{ width: `${clamp(part.part) * 100}%` }} title={part.name} />
        ))}
      </div>
      {marks.map((mark) => (
        <b key={mark.name} class={`mark ${mark.kind}`} style={{ left: `${clamp(mark.part) * 100}%` }} title={mark.name} />
      ))}
    </div>
  );
}

const clamp = (part: number): number => (Number.isFinite(part) ? Math.min(1, Math.max(0, part)) : 0);
