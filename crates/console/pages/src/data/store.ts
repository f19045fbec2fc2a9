// What the pages read: the newest status, rates and the last 15 minutes, as signals.
import { computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import { FrameSource, arrived, connection } from "./connection";
import { countersOf } from "./counters";
import { versionOf } from "./frame";
import { History, type PastHistory } from "./history";
import { getJson } from "./request";
import { Rates } from "./rates";
import { askForSession, renewSession } from "./session";
import { share } from "./share";
import type { Status } from "./status";

export const status = signal<Status | undefined>(undefined);
/** The gateway's clock at the newest frame, in milliseconds since 1970. */
export const now = signal(Date.now());
/** Grows with each frame: for what is read from `rates`. */
export const tick = signal(0);
/** Grows when a step of the history is over. */
export const step = signal(0);
/** The version that this page was loaded with; another one means that the page is old. */
export const firstVersion = signal<string | undefined>(undefined);
/** The version of the newest frame, also of one that this page cannot read. */
export const newestVersion = signal<string | undefined>(undefined);
/** Grows after an outage and with another process: for what is asked for once. */
export const returns = signal(0);

const rates = new Rates();
export const history = new History();

/** A part of the status, that tells its readers only when it changed. */
export function part<T>(select: (status: Status) => T, missing: T): ReadonlySignal<T> {
  return computed(() => (status.value ? select(status.value) : missing));
}

/** The rate of a counter, a second. */
export function rate(key: string): number | undefined {
  tick.value;
  return rates.of(key);
}

/** How old the numbers are, in seconds, while they do not arrive as they should; nothing while they do. */
export const stale = signal<number | undefined>(undefined);

const STALE_MS = 4_000;

function sawVersion(version: string): void {
  if (firstVersion.peek() === undefined) firstVersion.value = version;
  newestVersion.value = version;
}

function take(next: Status): void {
  // First, since what follows may not understand another version.
  sawVersion(versionOf(next));
  const before = status.peek();
  const at = Date.parse(next.at ?? "");
  const moment = Number.isFinite(at) ? at : Date.now();
  const grown = rates.add(moment, next.uptime_seconds, countersOf(next));
  if (grown) {
    const shares = next.memory.payload.shares;
    const payload = shares.reduce((all, line) => all + line.used, 0);
    history.add(grown, { journal_bytes: next.journal.bytes, resident: next.memory.resident?.now ?? null, payload });
  }
  status.value = share(before, next);
  now.value = moment;
  tick.value++;
  step.value = Math.floor(moment / 5_000);
  // It may have been asked for in vain while the gateway was not there.
  if (before === undefined) void askForSession();
  else if (next.uptime_seconds < before.uptime_seconds) {
    void renewSession();
    returns.value++;
  }
}

/** What happened meanwhile is known to the gateway alone. */
function resumed(): void {
  void loadPast();
  void askForSession();
  returns.value++;
}

async function loadPast(): Promise<void> {
  const answer = await getJson<PastHistory>("/console/history");
  if (!answer.ok || !Array.isArray(answer.value.points)) return;
  history.merge(answer.value);
  step.value++;
}

export function start(): void {
  new FrameSource({ take, sawVersion, resumed }).start();
  void loadPast();
  const look = (): void => {
    const age = performance.now() - arrived.peek();
    stale.value = arrived.peek() > 0 && age > STALE_MS ? Math.floor(age / 1000) : undefined;
  };
  setInterval(look, 1_000);
  effect(() => {
    connection.value;
    look();
  });
}
