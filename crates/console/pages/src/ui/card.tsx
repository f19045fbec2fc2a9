import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface CardProps {
  title: string;
  /** A line beside the title. */
  note?: ComponentChildren;
  /** At the right end of the title's line. */
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

export function Card({ title, note, aside, class: more = "", children }: CardProps) {
  const id = useId();
  return (
    <section class={`card ${more}`} aria-labelledby={id}>
      <header class="card-head">
        <h2 id={id}>{title}</h2>
        {note !== undefined && <div class="note">{note}</div>}
        {aside !== undefined && <div class="aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

/** A page's title, and a sentence about it. */
export function PageHead({ title, children, aside }: { title: ComponentChildren; children?: ComponentChildren; aside?: ComponentChildren }) {
  return (
    <header class="page-head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {children !== undefined && <p class="lead">{children}</p>}
      </div>
      {aside}
    </header>
  );
}

/** Says that something is not there, and why, without alarm. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children !== undefined && <div class="empty-text">{children}</div>}
    </div>
  );
}
