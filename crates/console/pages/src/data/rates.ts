// Rates from differences of counters between frames, over the last few seconds.
import type { Counters } from "./counters";

/** Over how long a rate is taken, in milliseconds: long enough to be calm, short enough to be now. */
export const WINDOW_MS = 5_000;

interface Sample {
  at: number;
  counters: Counters;
}

/** What grew between two samples. */
export interface Step {
  /** When it ended, in milliseconds since 1970. */
  at: number;
  seconds: number;
  grown: ReadonlyMap<string, number>;
}

export class Rates {
  #samples: Sample[] = [];

  /**
   * Takes the counters of a frame, and says what grew since the last one. Nothing for the first frame, nor when counters
   * fell: the process started anew, and what there was before says nothing about it.
   */
  add(at: number, counters: Counters): Step | undefined {
    const last = this.#samples.at(-1);
    if (last && (at <= last.at || fell(last.counters, counters))) {
      if (at === last.at) return undefined;
      this.#samples = [];
    }
    const before = this.#samples.at(-1);
    this.#samples.push({ at, counters });
    while (this.#samples.length > 2 && (this.#samples[1] as Sample).at <= at - WINDOW_MS) this.#samples.shift();
    if (!before) return undefined;
    const grown = new Map<string, number>();
    for (const [key, count] of counters) grown.set(key, count - (before.counters.get(key) ?? 0));
    return { at, seconds: (at - before.at) / 1000, grown };
  }

  /** The rate of a counter, a second; nothing while there is one sample alone. */
  of(key: string): number | undefined {
    const first = this.#samples[0];
    const last = this.#samples.at(-1);
    if (!first || !last || first === last) return undefined;
    const count = last.counters.get(key);
    if (count === undefined) return undefined;
    return (count - (first.counters.get(key) ?? 0)) / ((last.at - first.at) / 1000);
  }
}

function fell(old: Counters, next: Counters): boolean {
  for (const [key, count] of next) if (count < (old.get(key) ?? 0)) return true;
  return false;
}
