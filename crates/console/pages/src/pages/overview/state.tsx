import { useComputed } from "@preact/signals";
import { stateTone, stateWord } from "../../data/state";
import { now, part } from "../../data/store";
import { harmless, sentence } from "../../format/text";
import { Ticked } from "../../ui/ticked";
import { clock, utc } from "../../format/time";

const state = part((status) => status.state, "flowing");
const reason = part((status) => status.reason, "");

/** The answer to "is it all right?". */
export function StateHead() {
  const time = useComputed(() => clock(now.value));
  const inUtc = useComputed(() => utc(now.value));
  const tone = stateTone(state.value);
  return (
    <header class={`state ${tone}`}>
      <h1 tabIndex={-1}>
        <i class="dot" aria-hidden="true" />
        {sentence(stateWord(state.value))}
      </h1>
      <p class="reason">{clauses(reason.value)}</p>
      <p class="moment" title={inUtc}>
        {time}
      </p>
    </header>
  );
}

/** The reasons, one a line; a text in backticks is a name. */
function clauses(reason: string) {
  const all = harmless(reason).split("; ");
  return all.map((clause, index) => (
    <span class="clause" key={index}>
      <Ticked>{sentence(clause)}</Ticked>.
    </span>
  ));
}
