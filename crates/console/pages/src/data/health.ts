// How a sink or a source is doing, in a tone and words: as the server judges it in `state.rs`, for one part alone.
import { sum } from "./counters";
import { ago, duration } from "../format/duration";
import { count, plural } from "../format/count";
import type { Journal, Member, Sink, SourceBook, Status } from "./status";

export type Tone = "good" | "idle" | "warn" | "bad";

export interface Health {
  tone: Tone;
  /** A word or two, for a badge. */
  word: string;
  /** The whole, in a sentence without a full stop. */
  sentence: string;
}

/** By how many seconds it is late; nothing when it is not. */
export const lateBy = (sink: Sink): number | undefined =>
  sink.lag.age_seconds !== null && sink.lag.age_seconds > sink.usual_lag_seconds ? sink.lag.age_seconds : undefined;

export function sinkHealth(sink: Sink, arriving: number | null, now: number): Health {
  const error = sink.last_error?.message ?? "its last attempt failed";
  if (sink.broken) return { tone: "bad", word: "restarting", sentence: `it failed and is started again: ${error}` };
  if (sink.retry_at !== null) {
    const next = ago(Date.parse(sink.retry_at), now);
    const when = next.startsWith("in") ? `next attempt ${next}` : "another attempt is under way";
    return { tone: "bad", word: "failing", sentence: `${error}; ${when}` };
  }
  if (sink.waiting.length > 0) {
    const documents = sink.waiting.reduce((all, index) => all + index.documents, 0);
    const names = sink.waiting.map((index) => index.index).join(", ");
    const verb = documents === 1 ? "waits" : "wait";
    return { tone: "warn", word: "blocked index", sentence: `${plural(documents, "document")} ${verb} for unavailable indexes: ${names}` };
  }
  const behind = (sink.members ?? []).filter((member) => member.behind);
  const late = lateBy(sink);
  if (late !== undefined) {
    const out = sink.items_per_second;
    if (out !== null && arriving !== null && out < arriving) {
      return { tone: "warn", word: "falling behind", sentence: `${duration(late)} behind: it is slower than the incoming data` };
    }
    const rest = out !== null && arriving !== null && out > arriving ? sink.lag.items / (out - arriving) : Infinity;
    const left = rest < 7 * 86_400 ? `, in about ${duration(Math.ceil(rest))}` : "";
    return { tone: "warn", word: "catching up", sentence: `${duration(late)} behind: it is catching up${left}` };
  }
  if (behind.length > 0) return { tone: "warn", word: "member behind", sentence: membersBehind(behind) };
  if (sink.delivered === 0 && sink.lag.items === 0) return { tone: "idle", word: "idle", sentence: "nothing was sent so far" };
  return { tone: "good", word: "keeps up", sentence: sink.lag.items > 0 ? `keeps up; ${plural(sink.lag.items, "item")} on the way` : "keeps up; nothing is queued" };
}

const membersBehind = (behind: Member[]): string =>
  behind.length === 1
    ? `member ${behind[0]?.address ?? ""} cannot take what comes: it goes to disk first`
    : `${count(behind.length)} members cannot take what comes: it goes to disk first`;

/** `refusing` has the rates a second of refused requests and of refused items. */
export function sourceHealth(source: SourceBook, refusing: { requests: number | undefined; items: number | undefined }): Health {
  if (source.difference !== 0) return { tone: "bad", word: "books open", sentence: "its requests do not add up; this is a mistake in the program" };
  if ((refusing.requests ?? 0) > 0) return { tone: "warn", word: "refusing", sentence: "requests are refused now" };
  if ((refusing.items ?? 0) > 0) return { tone: "warn", word: "refusing", sentence: "items are refused now" };
  if (isIdle(source)) return { tone: "idle", word: "idle", sentence: "nothing was received so far" };
  const refused = refusedSoFar(source);
  return { tone: "good", word: "receiving", sentence: refused === "" ? "nothing was refused" : `nothing is refused now; since the start, ${refused}` };
}

/** Whether nothing came, not even what had to be refused. */
export const isIdle = (source: SourceBook): boolean =>
  source.received === 0 && source.forwarded === 0 && sum(source.items) === 0 && sum(source.refused) === 0 && sum(source.items_refused) === 0;

/** `3 requests and 40 items`; empty when nothing was refused. */
export function refusedSoFar(source: SourceBook): string {
  const [requests, items] = [sum(source.refused), sum(source.items_refused)];
  return [requests > 0 ? plural(requests, "request") : "", items > 0 ? plural(items, "item") : ""].filter((text) => text !== "").join(" and ");
}

/** The reason for which most requests were refused since the start; of items, where no request was. */
export function mostly(source: SourceBook): string {
  const counts = sum(source.refused) > 0 ? source.refused : source.items_refused;
  let most = "";
  for (const reason in counts) if ((counts[reason] ?? 0) > (counts[most] ?? 0)) most = reason;
  return most;
}

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;
/** A journal is as good as full: the next segment may not fit. */
const FULL = 0.99;

/** Whether the journal is full within a day, should it go on as it did lately. */
export const fillsSoon = (journal: Journal): boolean => journal.full_in_seconds !== null && journal.full_in_seconds < DAY_SECONDS;

/** When the journal is full, for a list of facts. */
export function untilFull(journal: Journal): { value: string; tone?: "bad" | "warn" } {
  const { full_in_seconds: seconds } = journal;
  if (journal.trouble !== null || journal.bytes >= FULL * journal.quota || (seconds !== null && seconds <= 0)) return { value: "now", tone: "bad" };
  if (seconds === null) return { value: journal.items_per_second === null ? "–" : "not at this rate" };
  const value = `in ${duration(seconds)}`;
  if (seconds < HOUR_SECONDS) return { value, tone: "bad" };
  return fillsSoon(journal) ? { value, tone: "warn" } : { value };
}

/** Requests under way, and how many may be where that adapts: `3 of 8`. */
export function inFlight(sink: Sink): string {
  const limit = sink.concurrency_limit;
  return limit === undefined ? count(sink.in_flight) : `${count(sink.in_flight)} of ${count(Math.floor(limit))}`;
}

/** Whether anything was received since the gateway started, or is in its journal from before. */
export const hasData = (status: Status): boolean =>
  status.journal.items_total > 0 || status.books.sources.some((source) => !isIdle(source));
