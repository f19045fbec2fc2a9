// Which moment of a chart is shown, moved by keys.

/** The place after a key was pressed, of `count` places; nothing for a key that does not move. */
export function placeAfter(key: string, shown: number | undefined, count: number): number | undefined {
  const last = count - 1;
  if (last < 0) return undefined;
  switch (key) {
    case "ArrowLeft":
      return shown === undefined ? last : Math.max(0, shown - 1);
    case "ArrowRight":
      return shown === undefined ? last : Math.min(last, shown + 1);
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return undefined;
  }
}
