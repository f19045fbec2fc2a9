// Polls `/tap`: a reader of the gateway's, that is open as long as it is asked.
import { signal, type Signal } from "@preact/signals";
import { pause, shown } from "../../data/poll";
import { within } from "../../data/request";
import { parseExactly } from "../../format/json";

export interface TapFilter {
  /** `source:NAME`, `sink:NAME`, with `*` for all. */
  point: string;
  signal: string;
  service: string;
  name: string;
  contains: string;
  every: string;
}

export const NO_FILTER: TapFilter = { point: "source:*", signal: "", service: "", name: "", contains: "", every: "1" };

export interface TapLine {
  /** Counts up, for keys. */
  number: number;
  text: string;
  item: Readonly<Record<string, unknown>>;
}

/** Lines kept in the page. */
export const MOST_LINES = 500;
const WAIT = "1s";
/** An answer that has not come by then does not come. */
const LONGEST_MS = 15_000;
const AGAIN_MS = 1_500;
const BUSY_MS = 300;
const MOST_BUSY = 10;

export function tapQuery(filter: TapFilter, id: string): string {
  const [kind = "source", name = "*"] = filter.point.split(/:(.*)/s, 2);
  const query = new URLSearchParams({ id, wait: WAIT, [kind]: name });
  for (const key of ["signal", "service", "name", "contains"] as const) if (filter[key] !== "") query.set(key, filter[key]);
  if (Number(filter.every) > 1) query.set("every", filter.every);
  return query.toString();
}

/** The lines of an answer, and how many records were missed: the last line says it. */
export function readAnswer(text: string): { items: { text: string; item: Readonly<Record<string, unknown>> }[]; missed: number } {
  const items = [];
  let missed = 0;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    let value: unknown;
    try {
      value = parseExactly(line);
    } catch {
      continue;
    }
    if (typeof value !== "object" || value === null) continue;
    const item = value as Record<string, unknown>;
    if (typeof item["missed_records"] === "number") missed += item["missed_records"];
    else items.push({ text: line, item });
  }
  return { items, missed };
}

export class TapReader {
  readonly lines: Signal<readonly TapLine[]> = signal([]);
  readonly missed = signal(0);
  readonly running = signal(false);
  readonly problem = signal("");
  #next = 0;
  /** One reader of the gateway's for each visit: with another filter, it is told so, and the old one ends. */
  readonly #id = `console-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  #stop: AbortController | undefined;

  start(filter: TapFilter): void {
    this.stop();
    this.#stop = new AbortController();
    this.running.value = true;
    this.problem.value = "";
    void this.#read(filter, this.#stop.signal);
  }

  /** Stops asking: the gateway ends a reader that is not asked for some seconds. */
  stop(): void {
    if (!this.#stop) return;
    this.#stop.abort();
    this.#stop = undefined;
    this.running.value = false;
  }

  clear(): void {
    this.lines.value = [];
    this.missed.value = 0;
  }

  async #read(filter: TapFilter, signal: AbortSignal): Promise<void> {
    let busy = 0;
    while (!signal.aborted) {
      try {
        await shown(signal);
        if (signal.aborted) return;
        const answer = await fetch(`/tap?${tapQuery(filter, this.#id)}`, { signal: within(LONGEST_MS, signal), cache: "no-store" });
        const text = await answer.text();
        if (signal.aborted) return;
        if (answer.status === 409 && ++busy < MOST_BUSY) {
          // The last answer for the old filter is still being made.
          await pause(BUSY_MS, signal);
          continue;
        }
        if (!answer.ok) {
          this.problem.value = text.split("\n", 1)[0] ?? `it answered ${answer.status}`;
          // A filter that is not understood will not be understood the next time.
          if (answer.status === 400 || answer.status === 404 || answer.status === 403) {
            this.running.value = false;
            return;
          }
          await pause(AGAIN_MS, signal);
          continue;
        }
        this.problem.value = "";
        busy = 0;
        this.#take(text);
      } catch {
        if (signal.aborted) return;
        this.problem.value = "the gateway did not answer; trying again";
        await pause(AGAIN_MS, signal);
      }
    }
  }

  #take(text: string): void {
    const { items, missed } = readAnswer(text);
    this.missed.value += missed;
    if (items.length === 0) return;
    const fresh = items.map(({ text, item }) => ({ number: this.#next++, text, item })).reverse();
    this.lines.value = [...fresh, ...this.lines.value].slice(0, MOST_LINES);
  }
}
