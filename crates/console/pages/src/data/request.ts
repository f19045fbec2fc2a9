// Requests to the gateway: what was answered, or why there is no answer in a sentence.

export type Answer<T> = { ok: true; value: T } | { ok: false; status: number; message: string };

/** What the gateway has in memory is here by then. */
const GET_MS = 15_000;
/** A search may take a while, and says itself when its time is over. */
const POST_MS = 120_000;
const LONGEST_WORDS = 300;

export async function getJson<T>(path: string, signal?: AbortSignal, token?: string): Promise<Answer<T>> {
  const headers = { accept: "application/json", ...(token === undefined ? {} : { "x-tidegate-token": token }) };
  return answered<T>(path, { headers }, within(GET_MS, signal));
}

export async function postJson<T>(path: string, body: string, type: string, token: string, signal?: AbortSignal): Promise<Answer<T>> {
  const headers = { "content-type": type, "x-tidegate-token": token, accept: "application/json" };
  return answered<T>(path, { method: "POST", headers, body }, within(POST_MS, signal));
}

/** A signal that also aborts after so long. */
export const within = (ms: number, signal?: AbortSignal): AbortSignal => (signal ? AbortSignal.any([signal, AbortSignal.timeout(ms)]) : AbortSignal.timeout(ms));

async function answered<T>(path: string, request: RequestInit, signal: AbortSignal): Promise<Answer<T>> {
  try {
    const response = await fetch(path, { ...request, cache: "no-store", signal });
    const text = await response.text();
    if (!response.ok) return { ok: false, status: response.status, message: wordsOf(text) || `it answered ${response.status}` };
    return { ok: true, value: JSON.parse(text) as T };
  } catch (error) {
    const name = error instanceof DOMException ? error.name : "";
    if (name === "AbortError") return { ok: false, status: -1, message: "cancelled" };
    return { ok: false, status: 0, message: name === "TimeoutError" ? "the gateway did not answer in time" : "the gateway did not answer" };
  }
}

/** What a refusal says: its first line, or `error` where it is JSON. */
export function wordsOf(text: string): string {
  return (errorOf(text) ?? text.split("\n", 1)[0] ?? "").slice(0, LONGEST_WORDS);
}

/** What a refusal in JSON says. */
function errorOf(text: string): string | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}
