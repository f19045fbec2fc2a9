// Who is looking, and what they may do: `/console/session`.
import { signal } from "@preact/signals";
import { getJson, postJson, type Answer } from "./request";

export interface Session {
  /** Allows changes; another one in each process of the gateway. */
  token: string;
  operator: boolean;
  search: boolean;
}

/** Nothing while it is asked for; `null` where this gateway has no sessions. */
export const session = signal<Session | null | undefined>(undefined);

let asked: Promise<void> | undefined;

/** Asks for it, unless it is known. */
export function askForSession(): Promise<void> {
  asked ??= ask();
  return asked;
}

/** Asks for it anew: the gateway may be another process. */
export function renewSession(): Promise<void> {
  asked = ask();
  return asked;
}

async function ask(): Promise<void> {
  const answer = await getJson<Session>("/console/session");
  session.value = answer.ok ? answer.value : null;
  if (!answer.ok && answer.status !== 404) asked = undefined;
}

/** Posts with the token. */
export const postAsSession = <T>(path: string, body: string, type: string, signal?: AbortSignal): Promise<Answer<T>> => asSession((token) => postJson<T>(path, body, type, token, signal));

/** Gets with the token what is for programs otherwise. */
export const getAsSession = <T>(path: string, signal?: AbortSignal): Promise<Answer<T>> => asSession((token) => getJson<T>(path, signal, token));

/** Asks with the token. Where that is refused, it may be of another process: then once more with the present one. */
async function asSession<T>(ask: (token: string) => Promise<Answer<T>>): Promise<Answer<T>> {
  await askForSession();
  const shown = session.peek()?.token ?? "";
  const answer = await ask(shown);
  if (answer.ok || answer.status !== 403) return answer;
  await renewSession();
  const token = session.peek()?.token ?? "";
  return token === shown ? answer : ask(token);
}
