// The agents one by one: `/fleet/agents`. What an agent says of itself may have any shape.
import type { Answer } from "./request";
import { getAsSession } from "./session";

export interface AgentLine {
  id: string;
  hostname?: string;
  policy_id: string;
  policy_revision: number;
  status: string;
  /** Whether it waits at this gateway now for something to do. */
  waiting: boolean;
  version: string;
  enrolled_at: string;
  last_seen?: string;
  tags?: string[];
  audit_unenrolled?: string;
}

export interface AgentDetails extends AgentLine {
  local_metadata?: unknown;
  user_provided_metadata?: unknown;
  components?: unknown;
  upgrade_details?: unknown;
}

export interface AgentFilter {
  status?: string | undefined;
  policy?: string | undefined;
  host?: string | undefined;
}

/** Some agents, in the order of their ids. */
export interface AgentPage {
  agents: AgentLine[];
  /** The id behind which there may be more. */
  next: string | null;
}

const PAGE = 50;

/** The next agents that fit, or as many of them as the gateway looked at: there may be more as long as it says where to go on. */
export function listAgents({ status, policy, host }: AgentFilter, after: string | undefined, signal: AbortSignal): Promise<Answer<AgentPage>> {
  const query = new URLSearchParams({ hostnames: "true", limit: String(PAGE) });
  for (const [name, value] of Object.entries({ status, policy, host, after })) if (value) query.set(name, value);
  return getAsSession<AgentPage>(`/fleet/agents?${query.toString()}`, signal);
}

export const showAgent = (id: string, signal: AbortSignal): Promise<Answer<AgentDetails>> => getAsSession<AgentDetails>(`/fleet/agents/${encodeURIComponent(id)}`, signal);

/** Something that an agent runs, or a unit of it. */
export interface Component {
  id: string;
  status: string;
  message: string;
}

/** The components of which an agent speaks, each with its units behind it, `most` in all; nothing of what has another shape. */
export function componentsOf(components: unknown, most: number): Component[] {
  const rows: Component[] = [];
  for (const part of partsOf(components)) {
    for (const [row, of] of [[part, ""], ...partsOf(part["units"]).map((unit) => [unit, idOf(part)] as const)] as const) {
      if (rows.length >= most) return rows;
      rows.push({ id: of === "" ? idOf(row) : `${of} › ${idOf(row)}`, status: text(row["status"]).toLowerCase(), message: text(row["message"]) });
    }
  }
  return rows;
}

const partsOf = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.filter(isObject) : []);
const idOf = (part: Record<string, unknown>): string => text(part["id"]) || text(part["type"]);

/** How deep an agent's metadata is looked into. */
const DEEPEST = 12;

/** The leaves of what an agent says, under the names that lead to them: `host.os.name`. At most so many, and what is nested too deep is left out. */
export function leavesOf(value: unknown, most: number): Record<string, unknown> {
  const leaves: Record<string, unknown> = {};
  let left = most;
  const visit = (value: unknown, name: string, depth: number): void => {
    if (left === 0) return;
    if (isObject(value) && Object.keys(value).length > 0) {
      if (depth === DEEPEST) leaves[name] = "…";
      else for (const [key, inner] of Object.entries(value)) visit(inner, name === "" ? key : `${name}.${key}`, depth + 1);
    } else if (name !== "") {
      leaves[name] = Array.isArray(value) ? value.map((inner) => (typeof inner === "object" && inner !== null ? "…" : inner)) : value;
      left -= 1;
    }
  };
  visit(value, "", 0);
  return leaves;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
