import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { now } from "../../data/store";
import { cut, harmless } from "../../format/text";
import { clockMs, dateTime, utc } from "../../format/time";

const DAY_MS = 86_400_000;

interface RowLineProps {
  time: string;
  /** A word, such as a severity, in its colour. */
  label: string;
  tone: string;
  /** Nothing where it is known anyway. */
  service: string | undefined;
  text: string;
  /** What there is to see when the line is pressed. */
  details: () => ComponentChildren;
}

/** A row in a line; whole when it is pressed. */
export function RowLine({ time, label, tone, service, text, details }: RowLineProps) {
  const [open, setOpen] = useState(false);
  const at = Date.parse(time);
  const old = Math.abs(now.peek() - at) > DAY_MS;
  return (
    <li class="log-line">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <time dateTime={time} title={Number.isFinite(at) ? utc(at) : ""}>
          {Number.isFinite(at) ? (old ? dateTime(at) : clockMs(at)) : time}
        </time>
        <span class={`severity ${tone}`}>{label}</span>
        {service !== undefined && <span class="log-service">{cut(harmless(service), 48)}</span>}
        <span class="log-body">{cut(harmless(text), 400)}</span>
      </button>
      {open && <div class="details">{details()}</div>}
    </li>
  );
}
