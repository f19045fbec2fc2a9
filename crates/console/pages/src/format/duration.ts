/** A length of time in its two largest units: `3 h 5 min`, `42 s`, `1.8 ms`. */
export function duration(seconds: number): string {
  const whole = Math.floor(seconds);
  if (whole >= 86_400) return two(Math.floor(whole / 86_400), "d", Math.floor(whole / 3_600) % 24, "h");
  if (whole >= 3_600) return two(Math.floor(whole / 3_600), "h", Math.floor(whole / 60) % 60, "min");
  if (whole >= 60) return two(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole >= 10) return `${whole} s`;
  if (whole >= 1) return `${seconds.toFixed(1)} s`;
  if (seconds >= 0.01) return `${(seconds * 1e3).toFixed(0)} ms`;
  if (seconds >= 0.001) return `${(seconds * 1e3).toFixed(1)} ms`;
  return seconds <= 0 ? "0 s" : `${(seconds * 1e6).toFixed(0)} µs`;
}

const two = (large: number, unit: string, small: number, smallUnit: string): string =>
  small > 0 ? `${large} ${unit} ${small} ${smallUnit}` : `${large} ${unit}`;

/** Without the smaller units that nobody wants to know: `3 min`, `2 h`. */
export function coarse(seconds: number): string {
  const unit = [86_400, 3_600, 60].find((unit) => seconds >= unit) ?? 1;
  const whole = Math.floor(seconds / unit) * unit;
  return whole < 10 ? `${whole} s` : duration(whole);
}

/** A moment seen from another one, both in milliseconds: `3 min ago`, `in 12 s`. */
export function ago(at: number, now: number): string {
  const seconds = (now - at) / 1000;
  if (seconds >= 0) return seconds < 1 ? "just now" : `${coarse(Math.floor(seconds))} ago`;
  return `in ${coarse(Math.max(1, Math.floor(-seconds)))}`;
}
