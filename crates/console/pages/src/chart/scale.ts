// Where the scale of a chart ends.

/** A round number above the highest value, so that the scale does not change with each step. */
export function ceiling(high: number | null | undefined): number {
  if (high === null || high === undefined || !(high > 0)) return 1;
  const wanted = high * 1.1;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const scaled = wanted / power;
  return ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => scaled <= step) ?? 10) * power;
}

/** Four steps of a power of two. */
export function binaryCeiling(high: number | null | undefined): number {
  if (high === null || high === undefined || !(high > 0)) return 1024;
  const step = 2 ** Math.ceil(Math.log2((high * 1.05) / 4));
  return Math.ceil((high * 1.05) / step) * step;
}
