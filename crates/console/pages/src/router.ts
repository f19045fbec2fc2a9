// Hash routes: `#/sinks/NAME?key=value`.
import { computed, signal } from "@preact/signals";

export interface Route {
  /** The page: the first part of the path; `overview` when there is none. */
  page: string;
  /** What of it: the second part, decoded. */
  name: string | undefined;
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/");
  return { page: page || "overview", name: rest.length > 0 && rest[0] !== "" ? decoded(rest.join("/")) : undefined, query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function link(page: string, name?: string, query?: Readonly<Record<string, string>>): string {
  const path = page === "overview" ? "" : page;
  const search = query ? `?${new URLSearchParams(query).toString()}` : "";
  return `#/${path}${name === undefined ? "" : `/${encodeURIComponent(name)}`}${search}`;
}

const hash = signal(typeof location === "undefined" ? "" : location.hash);
export const route = computed(() => parseRoute(hash.value));

export function followHash(): void {
  window.addEventListener("hashchange", () => {
    hash.value = location.hash;
  });
}

export function go(to: string): void {
  location.hash = to;
}
