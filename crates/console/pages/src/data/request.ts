// Requests to the gateway: what was answered, or why there is no answer in a sentence.

export type Answer<T> = { ok: true; value: T } | { ok: false; status: number; message: string };

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<Answer<T>> {
  return answered<T>(() => fetch(path, { cache: "no-store", headers: { accept: "application/json" }, ...(signal ? { signal } : {}) }));
}

export async function postJson<T>(path: string, body: string, type: string, token: string, signal?: AbortSignal): Promise<Answer<T>> {
  const headers = { "content-type": type, "x-tidegate-token": token, accept: "application/json" };
  return answered<T>(() => fetch(path, { method: "POST", cache: "no-store", headers, body, ...(signal ? { signal } : {}) }));
}

async function answered<T>(send: () => Promise<Response>): Promise<Answer<T>> {
  try {
    const response = await send();
    const text = await response.text();
    if (!response.ok) return { ok: false, status: response.status, message: firstLine(text) || `it answered ${response.status}` };
    return { ok: true, value: JSON.parse(text) as T };
  } catch (error) {
    const aborted = error instanceof DOMException && error.name === "AbortError";
    return { ok: false, status: aborted ? -1 : 0, message: aborted ? "cancelled" : "the gateway did not answer" };
  }
}

const firstLine = (text: string): string => (text.split("\n", 1)[0] ?? "").slice(0, 300);
