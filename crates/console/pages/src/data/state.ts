import type { State } from "./status";
import type { Tone } from "./health";

const STATES: Readonly<Record<State, [string, Tone]>> = {
  flowing: ["flowing", "good"],
  pushing_back: ["pushing back", "bad"],
  spilling: ["spilling", "warn"],
  draining: ["draining", "warn"],
  stopping: ["stopping", "warn"],
};

/** The word for it on the pages. */
export const stateWord = (state: State): string => STATES[state]?.[0] ?? String(state).replaceAll("_", " ");
export const stateTone = (state: State): Tone => STATES[state]?.[1] ?? "warn";
