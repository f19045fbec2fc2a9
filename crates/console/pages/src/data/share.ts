// Keeps what did not change: parts of a new frame that equal the old ones are the old ones, by reference. So a signal that is
// computed from a part tells nobody when only other parts changed.

type Plain = null | boolean | number | string | Plain[] | { [key: string]: Plain };

export function share<T>(old: T | undefined, next: T): T {
  return kept(old as Plain | undefined, next as Plain) as T;
}

function kept(old: Plain | undefined, next: Plain): Plain {
  if (old === next || old === undefined || old === null || next === null) return next;
  if (typeof old !== "object" || typeof next !== "object") return next;
  if (Array.isArray(next)) return Array.isArray(old) ? keptList(old, next) : next;
  return Array.isArray(old) ? next : keptObject(old, next);
}

function keptList(old: Plain[], next: Plain[]): Plain {
  let same = old.length === next.length;
  for (let index = 0; index < next.length; index++) {
    const value = next[index] as Plain;
    const merged = kept(old[index], value);
    if (merged !== old[index]) same = false;
    next[index] = merged;
  }
  return same ? old : next;
}

function keptObject(old: { [key: string]: Plain }, next: { [key: string]: Plain }): Plain {
  const keys = Object.keys(next);
  let same = keys.length === Object.keys(old).length;
  for (const key of keys) {
    const merged = kept(old[key], next[key] as Plain);
    if (merged !== old[key]) same = false;
    next[key] = merged;
  }
  return same ? old : next;
}
