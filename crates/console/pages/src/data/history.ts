// The last 15 minutes in steps of five seconds: what the gateway kept, and behind it what this page saw itself.
import { reasonKey } from "./counters";
import type { Step } from "./rates";

export const STEP_MS = 5_000;
export const STEPS = 180;

/** The answer of `/console/history`. */
export interface PastHistory {
  step_seconds: number;
  at: string;
  points: { received: number; delivered: number; refused: Record<string, number>; journal_bytes: number; resident: number | null; payload: number }[];
}

export interface Levels {
  journal_bytes: number;
  /** Nothing where the kernel does not say. */
  resident: number | null;
  payload: number;
}

interface Bucket {
  /** Sums over the step, by counter. */
  grown: Map<string, number>;
  /** How many milliseconds of it were seen. */
  seen: number;
  levels: Levels | undefined;
  /** Told by the gateway, which knows sums over all sources and sinks alone. */
  told: boolean;
}

const toldKey = (key: string): boolean => key === "in" || key === "out" || key === "refused" || key.startsWith(reasonKey(""));

const bucketOf = (at: number): number => Math.floor(at / STEP_MS);

export class History {
  #buckets = new Map<number, Bucket>();
  #newest = 0;

  /** Adds what grew in a step, to the steps of time that it covers. What lies in its future is of a clock that was set back. */
  add(step: Step, levels: Levels): void {
    this.#forgetAfter(bucketOf(step.at));
    const from = step.at - step.seconds * 1000;
    for (let index = bucketOf(from); index <= bucketOf(step.at); index++) {
      const begin = Math.max(from, index * STEP_MS);
      const covered = Math.min(step.at, (index + 1) * STEP_MS) - begin;
      if (covered <= 0) continue;
      const bucket = this.#bucket(index);
      bucket.seen += covered;
      for (const [key, count] of step.grown) {
        if (count !== 0) bucket.grown.set(key, (bucket.grown.get(key) ?? 0) + (count * covered) / (step.seconds * 1000));
      }
    }
    this.#bucket(bucketOf(step.at)).levels = levels;
  }

  /** Takes the past from the gateway for steps that this page did not see whole. */
  merge(past: PastHistory): void {
    const end = Date.parse(past.at);
    if (!Number.isFinite(end) || !(past.step_seconds > 0)) return;
    past.points.forEach((point, index) => {
      const at = end - (past.points.length - 1 - index) * past.step_seconds * 1000;
      // A point ends at its time.
      const number = bucketOf(at - STEP_MS / 2);
      const bucket = this.#bucket(number);
      if (bucket.seen >= STEP_MS * 0.9) return;
      const scale = STEP_MS / (past.step_seconds * 1000);
      let refused = 0;
      for (const reason in point.refused) {
        const count = point.refused[reason] ?? 0;
        refused += count;
        bucket.grown.set(reasonKey(reason), count * scale);
      }
      bucket.grown.set("in", point.received * scale);
      bucket.grown.set("out", point.delivered * scale);
      bucket.grown.set("refused", refused * scale);
      bucket.seen = STEP_MS;
      bucket.told = true;
      bucket.levels = { journal_bytes: point.journal_bytes, resident: point.resident, payload: point.payload };
    });
  }

  /** The times of the last 15 minutes, in seconds, and a second's rate of each counter at them: `null` where nothing is known. */
  rates(keys: readonly string[], now: number): { times: number[]; series: (number | null)[][] } {
    return this.#series(now, keys.length, (bucket, index) =>
      bucket.seen < STEP_MS / 2 || (bucket.told && !toldKey(keys[index] as string)) ? null : ((bucket.grown.get(keys[index] as string) ?? 0) * 1000) / bucket.seen,
    );
  }

  /** The same with a level. */
  levels(key: keyof Levels, now: number): { times: number[]; series: (number | null)[][] } {
    return this.#series(now, 1, (bucket) => bucket.levels?.[key] ?? null);
  }

  #series(now: number, count: number, value: (bucket: Bucket, index: number) => number | null): { times: number[]; series: (number | null)[][] } {
    // The step that is under way is shown once it is over.
    const last = bucketOf(now) - 1;
    const times: number[] = [];
    const series: (number | null)[][] = Array.from({ length: count }, () => []);
    for (let index = last - STEPS + 1; index <= last; index++) {
      times.push(((index + 1) * STEP_MS) / 1000);
      const bucket = this.#buckets.get(index);
      series.forEach((values, number) => values.push(bucket ? value(bucket, number) : null));
    }
    return { times, series };
  }

  #forgetAfter(index: number): void {
    if (index >= this.#newest) return;
    for (const later of this.#buckets.keys()) if (later > index) this.#buckets.delete(later);
    this.#newest = index;
  }

  #bucket(index: number): Bucket {
    const known = this.#buckets.get(index);
    if (known) return known;
    const bucket: Bucket = { grown: new Map(), seen: 0, levels: undefined, told: false };
    this.#buckets.set(index, bucket);
    if (index > this.#newest) {
      this.#newest = index;
      for (const old of this.#buckets.keys()) if (old < index - STEPS - 1) this.#buckets.delete(old);
    }
    return bucket;
  }
}
