const two = (value: number): string => String(value).padStart(2, "0");

/** The time of day here: `14:03:07`. */
export function clock(at: number): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** With milliseconds: `14:03:07.042`. */
export const clockMs = (at: number): string => `${clock(at)}.${String(new Date(at).getMilliseconds()).padStart(3, "0")}`;

/** Date and time here: `2027-01-15 14:03:07`. */
export function dateTime(at: number): string {
  const date = new Date(at);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(at)}`;
}

/** The time of day when it is today, else with the date. */
export const shortTime = (at: number, now: number): string =>
  new Date(at).toDateString() === new Date(now).toDateString() ? clock(at) : dateTime(at);

/** In UTC, for the one who hovers: `2027-01-15 13:03:07.042 UTC`. */
export const utc = (at: number): string => new Date(at).toISOString().replace("T", " ").replace("Z", " UTC");
