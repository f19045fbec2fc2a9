import type { Tone } from "../../data/health";
import { harmless } from "../../format/text";
import { Badge } from "../../ui/badge";
import { Dash } from "../../ui/dash";

/** Of agents, and of what they run: `FAILED` and the like are words of units. */
const TONES: Readonly<Record<string, Tone>> = { online: "good", healthy: "good", degraded: "warn", error: "bad", failed: "bad" };

/** The health that an agent, or a part of one, reports. */
export function AgentHealth({ status }: { status: string }) {
  if (status === "") return <Dash />;
  return <Badge tone={TONES[status] ?? "idle"}>{harmless(status)}</Badge>;
}
