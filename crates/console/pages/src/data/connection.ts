// Where frames come from: the event stream, and polling while there is none.
import { signal } from "@preact/signals";
import { readFrame } from "./frame";
import type { Status } from "./status";

/** `live`: a frame a second. `polling`: a status every two seconds. `lost`: neither, and tried again. */
export type Connection = "starting" | "live" | "polling" | "lost";

export const connection = signal<Connection>("starting");
/** When the newest numbers arrived, by this browser's monotonic clock. */
export const arrived = signal(0);
/** Whether the gateway answered the last attempt at a stream with something else: as many pages are open as can be. */
export const streamRefused = signal(false);

const POLL_MS = 2_000;
/** How long after the end of a stream another one is tried. */
const STREAM_AGAIN_MS = 15_000;
/** A stream that says nothing for so long is dead, whatever the network says. */
const SILENCE_MS = 6_000;
/** A page that nobody looks at gives its place back. */
const HIDDEN_MS = 60_000;
/** After so long without numbers, this page does not know what happened. */
const OUTAGE_MS = 10_000;

/** Who gets what comes. */
export interface FrameReader {
  /** Takes a status. What it throws makes the frame an unreadable one. */
  take: (status: Status) => void;
  /** Called with the version in a frame that cannot be read, where it has one. */
  sawVersion: (version: string) => void;
  /** Called after the first status behind an outage. */
  resumed: () => void;
}

export class FrameSource {
  #reader: FrameReader;
  #stream: EventSource | undefined;
  #poll: ReturnType<typeof setTimeout> | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #hidden: ReturnType<typeof setTimeout> | undefined;
  #asleep = false;
  /** Polls of before the last fall-back end by themselves. */
  #polls = 0;
  /** When the newest numbers arrived by the wall clock, which goes on while the machine sleeps. */
  #arrivedAt = Infinity;

  constructor(reader: FrameReader) {
    this.#reader = reader;
  }

  start(): void {
    this.#open();
    document.addEventListener("visibilitychange", () => this.#look());
    this.#look();
  }

  #look(): void {
    clearTimeout(this.#hidden);
    if (document.hidden) {
      this.#hidden = setTimeout(() => this.#sleep(), HIDDEN_MS);
    } else if (this.#asleep) {
      this.#asleep = false;
      this.#open();
    }
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
    stream.onerror = () => {
      // A stream ends every ten minutes, and connects again by itself. It does not where the answer was no stream.
      if (stream.readyState !== EventSource.CLOSED) return;
      streamRefused.value = true;
      this.#fallBack();
    };
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
    streamRefused.value = false;
    if (this.#accept(text, "live")) clearTimeout(this.#poll);
    else this.#fallBack();
  }

  /** Whether the text was a status and was taken. Until then, nothing says that the numbers are new. */
  #accept(text: string, how: Connection): boolean {
    const frame = readFrame(text);
    if (frame.kind === "unreadable" && frame.version !== undefined) this.#reader.sawVersion(frame.version);
    if (frame.kind !== "status") return false;
    const outage = connection.peek() === "lost" || Date.now() - this.#arrivedAt > OUTAGE_MS;
    try {
      this.#reader.take(frame.status);
    } catch (error) {
      console.error(error);
      return false;
    }
    this.#arrivedAt = Date.now();
    arrived.value = performance.now();
    connection.value = how;
    if (outage) this.#reader.resumed();
    return true;
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
    const text = await statusText();
    if (!this.#wanted(poll)) return;
    if (text === undefined || !this.#accept(text, "polling")) connection.value = "lost";
    this.#poll = setTimeout(() => void this.#pollOnce(poll), POLL_MS);
  }

  #wanted(poll: number): boolean {
    return !this.#asleep && connection.value !== "live" && poll === this.#polls;
  }
}

async function statusText(): Promise<string | undefined> {
  try {
    const answer = await fetch("/status.json", { cache: "no-store", signal: AbortSignal.timeout(5_000) });
    return answer.ok ? await answer.text() : undefined;
  } catch {
    return undefined;
  }
}
