// What to paste into senders: `/console/connect`.
import { getJson, type Answer } from "./request";

/** A kind of sender; where the gateway does not receive what it speaks, `setting` would turn that on. */
export interface SenderKind {
  kind: string;
  title: string;
  received: boolean;
  setting: string | null;
}

export interface Snippet {
  title: string;
  file: string | null;
  content: string;
  notes: string[];
}

/** What to paste, or what the configuration lacks for it. */
export interface Instructions {
  snippets?: Snippet[];
  missing?: { setting: string; lines: string; note: string };
}

export const getKinds = (signal: AbortSignal): Promise<Answer<SenderKind[]>> => getJson<SenderKind[]>("/console/connect", signal);

export const getInstructions = (kind: string, signal: AbortSignal): Promise<Answer<Instructions>> => getJson<Instructions>(`/console/connect?kind=${encodeURIComponent(kind)}`, signal);
