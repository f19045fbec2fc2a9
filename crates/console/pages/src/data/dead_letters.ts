// Orders about the dead letters of a sink: `/console/dead-letters/resend` and `/console/dead-letters/discard`.
import { plural } from "../format/count";
import { harmless, sentence } from "../format/text";
import { postAsSession } from "./session";

export type LetterAction = "resend" | "discard";

/** What one order did. */
interface Outcome {
  sent?: number;
  discarded?: number;
  items: number;
  kept: number;
  message?: string;
}

/** What was done with letters by all orders so far. */
export interface LetterProgress {
  letters: number;
  items: number;
  /** How many of those that were meant are left; nothing where that is not known. */
  kept?: number;
  /** Why not all is done. */
  why?: string;
}

/** Has the gateway act on the letters of `sink` up to the number `through`. A long order is given again for what is left; `tell` is told then. */
export async function orderLetters(action: LetterAction, sink: string, through: number, tell: (progress: LetterProgress) => void, signal: AbortSignal): Promise<LetterProgress> {
  const progress: LetterProgress = { letters: 0, items: 0 };
  for (;;) {
    const answer = await postAsSession<Outcome>(`/console/dead-letters/${action}?sink=${encodeURIComponent(sink)}&through=${through}`, "", "text/plain", signal);
    if (!answer.ok) return { letters: progress.letters, items: progress.items, why: answer.message };
    const { sent = 0, discarded = 0, items, kept, message } = answer.value;
    progress.letters += sent + discarded;
    progress.items += items;
    progress.kept = kept;
    if (kept === 0 || message !== undefined || sent + discarded === 0) return message === undefined ? progress : { ...progress, why: message };
    tell({ ...progress });
  }
}

/** The outcome in sentences. */
export function outcomeOf(action: LetterAction, { letters, items, kept, why }: LetterProgress): string {
  const done = `${plural(letters, "letter")} with ${plural(items, "item")} ${letters === 1 ? "was" : "were"} ${action === "resend" ? "sent again" : "discarded"}.`;
  const left = kept === undefined || kept === 0 ? "" : ` ${plural(kept, "letter")} ${kept === 1 ? "is" : "are"} kept.`;
  return `${letters === 0 && why !== undefined ? "" : done}${left}${why === undefined ? "" : ` ${harmless(sentence(why)).replace(/[.\s]*$/, ".")}`}`.trim();
}
