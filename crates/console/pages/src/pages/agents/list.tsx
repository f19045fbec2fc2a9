// The agents one by one, some at a time: narrowed down by health, policy and host.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { PAGE, listAgents, type AgentFilter, type AgentLine, type AgentPage } from "../../data/agents";
import { poll } from "../../data/poll";
import { count } from "../../format/count";
import { harmless } from "../../format/text";
import { go, link, route } from "../../router";
import { Ago } from "../../ui/ago";
import { Card } from "../../ui/card";
import { Field } from "../../ui/field";
import { Name } from "../../ui/stranger";
import { Table, type Column } from "../../ui/table";
import { AgentDrawer } from "./drawer";
import { AgentHealth } from "./health";

const POLL_MS = 5_000;

/** The address of the list with this filter, and with one agent opened. */
const address = (filter: AgentFilter, agent?: string): string => {
  const given = Object.entries({ ...filter, agent }).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return link("agents", undefined, Object.fromEntries(given));
};

export function AgentList({ statuses, policies }: { statuses: readonly string[]; policies: readonly string[] }) {
  const { query } = route.value;
  const [status, policy, host] = ["status", "policy", "host"].map((name) => query.get(name) ?? "");
  const filter: AgentFilter = { status, policy, host };
  const opened = query.get("agent") ?? undefined;
  const found = useSignal<AgentPage | undefined>(undefined);
  const failed = useSignal<string | undefined>(undefined);
  const busy = useSignal(false);

  /** Asks for the first agents anew, or for more of them. */
  const ask = async (signal: AbortSignal, after?: string): Promise<void> => {
    const answer = await listAgents(filter, after, signal);
    if (signal.aborted) return;
    failed.value = answer.ok ? undefined : answer.message;
    if (!answer.ok) return;
    const before = after === undefined ? [] : (found.peek()?.agents ?? []);
    found.value = { agents: [...before, ...answer.value.agents], next: answer.value.next };
  };
  useEffect(() => {
    found.value = undefined;
    const ended = new AbortController();
    const first = async (): Promise<void> => {
      // What somebody has gone on to stays as it is.
      if (!busy.peek() && (found.peek()?.agents.length ?? 0) <= PAGE) await ask(ended.signal);
    };
    void poll(first, POLL_MS, ended.signal);
    return () => ended.abort();
  }, [status, policy, host]);
  const more = async (): Promise<void> => {
    busy.value = true;
    await ask(new AbortController().signal, found.peek()?.next ?? undefined);
    busy.value = false;
  };

  const change = (changed: AgentFilter): void => go(address({ ...filter, ...changed }));
  const columns: Column<AgentLine>[] = [
    {
      title: "Host",
      head: true,
      cell: (agent) => (
        <>
          <a href={address(filter, agent.id)}>
            <Name most={60}>{agent.hostname ?? agent.id}</Name>
          </a>
          {agent.hostname !== undefined && <div class="sub">{agent.id}</div>}
        </>
      ),
    },
    { title: "Health", cell: (agent) => <AgentHealth status={agent.status} /> },
    {
      title: "Policy",
      cell: (agent) => (
        <>
          <Name most={40}>{agent.policy_id}</Name>
          <div class="sub">revision {count(agent.policy_revision)}</div>
        </>
      ),
    },
    { title: "Version", cell: (agent) => harmless(agent.version) },
    { title: "Seen", cell: (agent) => (agent.waiting ? "waits here" : <Ago at={agent.last_seen ?? null} />) },
  ];
  const page = found.value;
  return (
    <Card title="One by one" class="wide">
      <div class="filters">
        <Choose label="Health" all={statuses} chosen={status ?? ""} choose={(status) => change({ status })} />
        <Choose label="Policy" all={policies} chosen={policy ?? ""} choose={(policy) => change({ policy })} />
        <Field label="Host or id">
          <input type="search" value={host} placeholder="a part of it" onChange={(event) => change({ host: event.currentTarget.value.trim() })} />
        </Field>
      </div>
      {failed.value !== undefined && <p class="say bad">{harmless(failed.value)}</p>}
      {page !== undefined && <Table caption="Agents" columns={columns} rows={page.agents} id={({ id }) => id} none={page.next === null ? "No agent fits." : "None of those that were looked at fits."} />}
      {page !== undefined && page.next !== null && (
        <div class="buttons below">
          <button type="button" class="small" disabled={busy.value} onClick={() => void more()}>
            {busy.value ? "Looking…" : "More"}
          </button>
        </div>
      )}
      {opened !== undefined && <AgentDrawer key={opened} id={opened} close={() => go(address(filter))} />}
    </Card>
  );
}

/** One of some names, or all of them. One that is chosen stays, even when there is none of it any more. */
function Choose({ label, all, chosen, choose }: { label: string; all: readonly string[]; chosen: string; choose: (name: string) => void }) {
  const names = all.includes(chosen) || chosen === "" ? all : [...all, chosen];
  return (
    <Field label={label}>
      <select value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">all</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {harmless(name)}
          </option>
        ))}
      </select>
    </Field>
  );
}
