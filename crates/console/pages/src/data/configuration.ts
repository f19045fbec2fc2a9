// The effective configuration: `/console/configuration`.
import { getJson, type Answer } from "./request";

export interface Configuration {
  file: string | null;
  text: string;
}

export const getConfiguration = (): Promise<Answer<Configuration>> => getJson<Configuration>("/console/configuration");

export interface Listener {
  address: string;
  tls: boolean;
}

/** The addresses of `listen`, by name, as the effective configuration writes them: `http` → `127.0.0.1:4318`. */
export function listeners(text: string): Map<string, Listener> {
  const settings = settingsOf(text);
  const found = new Map<string, Listener>();
  // With one certificate for several, `listeners` says for which.
  const shared = settings.has("listen.tls.cert_file") ? (settings.get("listen.tls.listeners") ?? "") : "";
  for (const name of ["http", "grpc", "elasticsearch", "apm"]) {
    const address = settings.get(`listen.${name}`);
    if (address === undefined) continue;
    found.set(name, { address, tls: settings.has(`listen.tls.${name}.cert_file`) || shared.split(/[^\w]+/).includes(name) });
  }
  return found;
}

/** Settings with a value on their own line, by their path: `listen.tls.cert_file`. */
function settingsOf(text: string): Map<string, string> {
  const settings = new Map<string, string>();
  const groups: { indent: number; key: string }[] = [];
  for (const line of text.split("\n")) {
    const match = /^( *)(\w+):\s*(\[[^\]]*\]|"[^"]*"|'[^']*'|[^\s#]*)/.exec(line);
    if (!match) continue;
    const [, spaces = "", key = "", value = ""] = match;
    while ((groups.at(-1)?.indent ?? -1) >= spaces.length) groups.pop();
    groups.push({ indent: spaces.length, key });
    if (value !== "") settings.set(groups.map((group) => group.key).join("."), value.replace(/^["']|["']$/g, ""));
  }
  return settings;
}

/** The address as a client writes it: one that stands for all addresses becomes the host of this page. */
export function reachable(address: string, host: string): string {
  const match = /^(?:0\.0\.0\.0|\[::\]|\*)?:(\d+)$/.exec(address);
  return match ? `${host}:${match[1]}` : address;
}
