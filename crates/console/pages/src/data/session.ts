// Who is looking, and what they may do: `/console/session`.
import { signal } from "@preact/signals";
import { getJson } from "./request";

export interface Session {
  token: string;
  operator: boolean;
  version: string;
  search: boolean;
}

/** Nothing while it is asked for; `null` where this gateway has no sessions. */
export const session = signal<Session | null | undefined>(undefined);

let asked: Promise<void> | undefined;

export function askForSession(): Promise<void> {
  asked ??= getJson<Session>("/console/session").then((answer) => {
    session.value = answer.ok ? answer.value : null;
    if (!answer.ok && answer.status !== 404) asked = undefined;
  });
  return asked;
}
