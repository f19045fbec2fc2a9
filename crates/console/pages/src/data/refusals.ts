// The last refused requests: `/console/rejects`.

export interface RefusedRequest {
  at: string;
  source: string;
  reason: string;
  /** The reason in a sentence. */
  meaning: string;
  peer: string | null;
  tenant: string | null;
  bytes: number | null;
  what: string | null;
  detail: string | null;
}

export interface Rejections {
  /** The newest first. */
  requests: RefusedRequest[];
  by_reason: { reason: string; meaning: string; count: number }[];
}

/**
 * A key for each request that stays the same when newer ones come: equal ones are numbered from the oldest.
 */
export function refusalKeys(requests: readonly RefusedRequest[]): Map<RefusedRequest, string> {
  const equal = new Map<string, number>();
  const keys = new Map<RefusedRequest, string>();
  for (const request of [...requests].reverse()) {
    const key = [request.at, request.source, request.peer, request.reason].join(" ");
    const number = equal.get(key) ?? 0;
    equal.set(key, number + 1);
    keys.set(request, `${key} ${number}`);
  }
  return keys;
}
