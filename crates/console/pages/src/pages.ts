// The pages, in the order of the navigation.
import type { Session } from "./data/session";
import type { Status } from "./data/status";

export interface PageEntry {
  id: string;
  title: string;
  /** The letter behind `g`. */
  key: string;
  group: "now" | "data" | "operate";
  /** Whether it has anything to show here; every page can be reached by its address. */
  shown?: (status: Status | undefined, session: Session | null | undefined) => boolean;
}

const isSearchable: PageEntry["shown"] = (_status, session) => session?.search === true;

export const PAGES: readonly PageEntry[] = [
  { id: "overview", title: "Overview", key: "o", group: "now" },
  { id: "flow", title: "Flow", key: "f", group: "now" },
  { id: "sources", title: "Sources", key: "i", group: "now" },
  { id: "sinks", title: "Sinks", key: "s", group: "now" },
  { id: "tenants", title: "Tenants", key: "n", group: "now", shown: (status) => status?.tenants !== undefined },
  { id: "traces", title: "Traces", key: "t", group: "data", shown: isSearchable },
  { id: "logs", title: "Logs", key: "l", group: "data", shown: isSearchable },
  { id: "metrics", title: "Metrics", key: "m", group: "data", shown: isSearchable },
  { id: "tap", title: "Tap", key: "p", group: "data" },
  { id: "rejects", title: "Rejects", key: "r", group: "operate" },
  { id: "journal", title: "Journal", key: "j", group: "operate" },
  { id: "memory", title: "Memory", key: "y", group: "operate" },
  { id: "files", title: "Files", key: "e", group: "operate" },
  { id: "agents", title: "Agents", key: "a", group: "operate", shown: (status) => status?.fleet !== undefined },
  { id: "configuration", title: "Configuration", key: "c", group: "operate" },
];

/** Whether the navigation has it. */
export const isShown = (page: PageEntry, status: Status | undefined, session: Session | null | undefined): boolean => page.shown?.(status, session) ?? true;
