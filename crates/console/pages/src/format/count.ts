/** `1,234,567`: as `/status` has it. */
export const count = (value: number): string => Math.round(value).toLocaleString("en-US");

/** `1 record`, `1,234 records`. */
export const plural = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

const SCALES: [number, string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** Short, for rates and axes: `0.4`, `42`, `1.25k`, `12.3M`. */
export function compact(value: number): string {
  const size = Math.abs(value);
  if (size < 0.05) return "0";
  if (size < 9.95) return trimmed(value.toFixed(1));
  if (size < 999.5) return value.toFixed(0);
  for (const [scale, letter] of SCALES) {
    if (size < scale * 0.9995) continue;
    const scaled = value / scale;
    const digits = Math.abs(scaled) < 9.995 ? 2 : Math.abs(scaled) < 99.95 ? 1 : 0;
    return trimmed(scaled.toFixed(digits)) + letter;
  }
  return value.toFixed(0);
}

const trimmed = (text: string): string => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

/** A part of a whole in percent, without a sign: `0.4`, `5`, `100`. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return part > 0 ? "100" : "0";
  const value = (part * 100) / whole;
  if (value > 0 && value < 0.1) return "< 0.1";
  return value < 9.95 ? trimmed(value.toFixed(1)) : value.toFixed(0);
}
