// Conditions over attributes as they are typed: `http.route=/cart status=500 user="a b"`.

/** Names and values; a quoted value may have spaces. What has no `=` is left out. */
export function termsOf(text: string): Record<string, string> {
  const terms: Record<string, string> = {};
  for (const match of text.matchAll(/([^\s=]+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))/g)) {
    const name = match[1];
    if (name === undefined) continue;
    terms[name] = match[2] === undefined ? (match[3] ?? "") : match[2].replace(/\\(.)/g, "$1");
  }
  return terms;
}

/** A term as it is typed. */
export const termText = (name: string, value: string): string => `${name}=${/[\s"]/.test(value) || value === "" ? `"${value.replace(/(["\\])/g, "\\$1")}"` : value}`;

/** A length of time as people type it, in nanoseconds: `250ms`, `1.5s`, `2m`; nothing when it is none. */
export function nanosecondsOf(text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|m|min|h)?\s*$/.exec(text);
  if (!match) return undefined;
  const units: Readonly<Record<string, number>> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 60e9, min: 60e9, h: 3600e9 };
  return Math.round(Number(match[1]) * (units[match[2] ?? "ms"] ?? 1e6));
}
