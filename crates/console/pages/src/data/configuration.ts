// The effective configuration: `/console/configuration`.
import { getJson, type Answer } from "./request";

export interface Configuration {
  file: string | null;
  text: string;
}

export const getConfiguration = (): Promise<Answer<Configuration>> => getJson<Configuration>("/console/configuration");

/** The addresses of `listen`, by name, as the effective configuration writes them: `http` → `127.0.0.1:4318`. */
export function listenAddresses(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let inside = false;
  for (const line of text.split("\n")) {
    if (/^\S/.test(line)) inside = line.startsWith("listen:");
    const entry = /^\s{1,4}(http|grpc|elasticsearch|apm):\s*["']?([^\s"'#]+)/.exec(line);
    if (inside && entry?.[1] && entry[2]) found.set(entry[1], entry[2]);
  }
  return found;
}

/** The address as a client writes it: one that stands for all addresses becomes the host of this page. */
export function reachable(address: string, host: string): string {
  const match = /^(?:0\.0\.0\.0|\[::\]|\*)?:(\d+)$/.exec(address);
  return match ? `${host}:${match[1]}` : address;
}
