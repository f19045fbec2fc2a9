const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `512 B`, `13.3 MiB`, `20 GiB`: one decimal below a hundred, none when it would be zero. */
export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  let text = value.toFixed(digits);
  if (text.endsWith(".0")) text = text.slice(0, -2);
  return `${text} ${UNITS[unit]}`;
}
