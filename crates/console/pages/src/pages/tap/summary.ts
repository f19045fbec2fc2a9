// An item of the tap in one line: what it is, of whom, and its value.
import { compact } from "../../format/count";
import { duration } from "../../format/duration";

export interface Summary {
  time: number | undefined;
  signal: string;
  service: string;
  title: string;
  detail: string;
  bad: boolean;
}

type Item = Readonly<Record<string, unknown>>;

const text = (item: Item, ...keys: string[]): string => {
  for (const key of keys) {
    const value = item[key];
    if (typeof value === "string" && value !== "") return value;
  }
  return "";
};

const number = (item: Item, key: string): number | undefined => (typeof item[key] === "number" ? item[key] : undefined);

export function summaryOf(item: Item): Summary {
  const time = Date.parse(text(item, "time", "received"));
  const milliseconds = number(item, "duration_ms");
  const value = item["value"];
  const body = item["body"];
  const parts = [
    milliseconds === undefined ? "" : duration(milliseconds / 1000),
    typeof value === "number" ? compactOrExact(value) : typeof value === "string" ? value : "",
    text(item, "severity", "severity_text", "kind", "type"),
    labels(item["labels"] ?? item["attributes"]),
  ];
  const severity = text(item, "severity", "severity_text").toUpperCase();
  const status = text(item, "status", "status_code").toLowerCase();
  return {
    time: Number.isFinite(time) ? time : undefined,
    signal: text(item, "signal"),
    service: text(item, "service", "job"),
    title: text(item, "name", "metric") || (typeof body === "string" ? body : body === undefined ? text(item, "summary", "note") : JSON.stringify(body)),
    detail: parts.filter((part) => part !== "").join(" · "),
    bad: status === "error" || severity.startsWith("ERR") || severity.startsWith("FATAL"),
  };
}

const compactOrExact = (value: number): string => (Math.abs(value) < 1e4 ? String(Number(value.toPrecision(6))) : compact(value));

function labels(value: unknown): string {
  if (typeof value !== "object" || value === null) return "";
  return Object.entries(value)
    .slice(0, 4)
    .map(([key, value]) => `${key}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(" ");
}
