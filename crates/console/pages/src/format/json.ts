// JSON with numbers as they are written: JavaScript's are exact up to 2^53 only.

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const INTEGER = /^-?\d+$/;

/** Parses a text; integers that a number cannot hold become texts. Throws as `JSON.parse` does. */
export function parseExactly(text: string): unknown {
  const isTooLarge = (token: string): boolean => INTEGER.test(token) && !Number.isSafeInteger(Number(token));
  return JSON.parse(text.replace(TOKENS, (token) => (isTooLarge(token) ? `"${token}"` : token)));
}

/** The text with a line for each value, and every value as it is written. */
export function indented(text: string): string {
  const tokens = text.match(TOKENS) ?? [];
  let out = "";
  let depth = 0;
  const line = (): string => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, index) => {
    const opened = tokens[index - 1] === "{" || tokens[index - 1] === "[";
    if (token === "}" || token === "]") {
      depth--;
      out += opened ? token : line() + token;
      return;
    }
    if (opened) out += line();
    out += token;
    if (token === "{" || token === "[") depth++;
    if (token === ",") out += line();
    if (token === ":") out += " ";
  });
  return out;
}
