// Where frames come from: the event stream, and polling while there is none.
import { signal } from "@preact/signals";
import { readFrame } from "./frame";
import type { Status } from "./status";

/** `live`: a frame a second. `polling`: a status every two seconds. `lost`: neither, and tried again. */
export type Connection = "starting" | "live" | "polling" | "lost";

export const connection = signal<Connection>("starting");
/** When the newest numbers arrived, by this browser's monotonic clock. */
export const arrived = signal(0);

const POLL_MS = 2_000;
/** How long after the end of a stream another one is tried. */
const STREAM_AGAIN_MS = 15_000;
/** A stream that says nothing for so long is dead, whatever the network says. */
const SILENCE_MS = 6_000;
/** A page that nobody looks at gives its place back. */
const HIDDEN_MS = 60_000;

export class FrameSource {
  #take: (status: Status) => void;
  #resumed: () => void;
  #stream: EventSource | undefined;
  #poll: ReturnType<typeof setTimeout> | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #hidden: ReturnType<typeof setTimeout> | undefined;
  #asleep = false;
  /** Polls of before the last fall-back end by themselves. */
  #polls = 0;

  /** Gives each status to `take`; calls `resumed` when there may be a gap before the next one. */
  constructor(take: (status: Status) => void, resumed: () => void) {
    this.#take = take;
    this.#resumed = resumed;
  }

  start(): void {
    this.#open();
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.#hidden);
      if (document.hidden) {
        this.#hidden = setTimeout(() => this.#sleep(), HIDDEN_MS);
      } else if (this.#asleep) {
        this.#asleep = false;
        this.#resumed();
        this.#open();
      }
    });
  }

  #sleep(): void {
    this.#asleep = true;
    this.#close();
    clearTimeout(this.#poll);
    clearTimeout(this.#again);
  }

  #open(): void {
    this.#close();
    const stream = new EventSource("/console/events");
    this.#stream = stream;
    stream.onmessage = (event: MessageEvent<string>) => this.#frame(event.data);
    stream.onerror = () => this.#fallBack();
    this.#listen();
  }

  #close(): void {
    this.#stream?.close();
    this.#stream = undefined;
    clearTimeout(this.#silence);
  }

  #listen(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#fallBack(), SILENCE_MS);
  }

  #frame(text: string): void {
    this.#listen();
    const frame = readFrame(text);
    if (frame.kind !== "status") {
      this.#fallBack();
      return;
    }
    clearTimeout(this.#poll);
    this.#accept(frame.status, "live");
  }

  #accept(status: Status, how: Connection): void {
    arrived.value = performance.now();
    connection.value = how;
    this.#take(status);
  }

  #fallBack(): void {
    this.#close();
    if (connection.value === "live") connection.value = "lost";
    clearTimeout(this.#poll);
    void this.#pollOnce(++this.#polls);
    clearTimeout(this.#again);
    this.#again = setTimeout(() => this.#open(), STREAM_AGAIN_MS);
  }

  async #pollOnce(poll: number): Promise<void> {
    try {
      const answer = await fetch("/status.json", { cache: "no-store", signal: AbortSignal.timeout(5_000) });
      const frame = answer.ok ? readFrame(await answer.text()) : undefined;
      if (!this.#wanted(poll)) return;
      if (frame?.kind === "status") this.#accept(frame.status, "polling");
      else connection.value = "lost";
    } catch {
      if (!this.#wanted(poll)) return;
      connection.value = "lost";
    }
    this.#poll = setTimeout(() => void this.#pollOnce(poll), POLL_MS);
  }

  #wanted(poll: number): boolean {
    return !this.#asleep && connection.value !== "live" && poll === this.#polls;
  }
}
