// Rates from what counters grew by between frames, over the last few seconds.
import { growth, type Counters } from "./counters";

/** Over how long a rate is taken, in milliseconds: long enough to be calm, short enough to be now. */
export const WINDOW_MS = 5_000;
/** Frames further apart say nothing about each other: an average over so long is not what happens now. */
export const LONGEST_GAP_MS = 15_000;

/** The counters of a frame, and when they were taken. */
interface Sample {
  at: number;
  uptime: number;
  counters: Counters;
}

/** What grew between two samples. */
export interface Step {
  /** When it ended, in milliseconds since 1970. */
  at: number;
  seconds: number;
  grown: Counters;
}

export class Rates {
  #last: Sample | undefined;
  #steps: Step[] = [];

  /**
   * Takes the counters of a frame, and says what grew since the last one. Nothing for the first frame, nor for the first
   * of another process, after a gap, or after the gateway's clock was set back.
   */
  add(at: number, uptime: number, counters: Counters): Step | undefined {
    const last = this.#last;
    if (at === last?.at) return undefined;
    this.#last = { at, uptime, counters };
    if (!last || at < last.at || at - last.at > LONGEST_GAP_MS || uptime < last.uptime) {
      this.#steps = [];
      return undefined;
    }
    const step = { at, seconds: (at - last.at) / 1000, grown: growth(last.counters, counters) };
    this.#steps = [...this.#steps.filter((old) => old.at > at - WINDOW_MS), step];
    return step;
  }

  /** The rate of a counter, a second; nothing while there is no growth known of it. */
  of(key: string): number | undefined {
    let seconds = 0;
    let count = 0;
    for (const step of this.#steps) {
      const grown = step.grown.get(key);
      if (grown === undefined) continue;
      seconds += step.seconds;
      count += grown;
    }
    return seconds > 0 && this.#steps.at(-1)?.grown.has(key) ? count / seconds : undefined;
  }
}
