import { Fragment } from "preact";
import type { Equation } from "../data/books";
import { count } from "../format/count";
import { Name } from "./stranger";

/** `10 received = 9 accepted + 1 refused + 0 open`, and the difference. */
export function EquationLine({ equation, href }: { equation: Equation; href?: string }) {
  return (
    <li class="equation">
      <span class="equation-name">{href === undefined ? equation.name : <a href={href}><Name>{equation.name}</Name></a>}</span>
      <span class="terms">
        <Terms terms={equation.left} />
        <span class="sign">=</span>
        <Terms terms={equation.right} />
      </span>
      <Difference value={equation.difference} />
    </li>
  );
}

function Terms({ terms }: { terms: [string, number][] }) {
  return (
    <>
      {terms.map(([name, value], index) => (
        <Fragment key={name}>
          {index > 0 && <span class="sign">+</span>}
          <span class="term">
            <b class={name === "dropped" && value > 0 ? "warn" : ""}>{count(value)}</b> <small>{name}</small>
          </span>
        </Fragment>
      ))}
    </>
  );
}

export function Difference({ value }: { value: number }) {
  return <span class={value === 0 ? "difference" : "difference bad"}>{value === 0 ? "difference 0" : `difference ${value > 0 ? "+" : "−"}${count(Math.abs(value))}`}</span>;
}
