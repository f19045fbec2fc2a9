// The agents one by one, some at a time: narrowed down by health, policy and host.
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { listAgents, type AgentFilter, type AgentLine, type AgentPage } from "../../data/agents";
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
  const [status = "", policy = "", host = ""] = ["status", "policy", "host"].map((name) => query.get(name) ?? "");
  const filter: AgentFilter = { status, policy, host };
  const opened = query.get("agent") ?? undefined;
  const found = useSignal<AgentPage | undefined>(undefined);
  const failed = useSignal<string | undefined>(undefined);
  const busy = useSignal(false);
  /** Ends with the filter. */
  const ended = useRef(new AbortController());
  /** Whether somebody has gone on behind the first agents: those that are shown stay then. */
  const wentOn = useRef(false);

  /** Asks for the first agents anew, or for more of them. */
  const ask = async (after?: string): Promise<void> => {
    const { signal } = ended.current;
    const answer = await listAgents(filter, after, signal);
    if (signal.aborted || (after === undefined && wentOn.current)) return;
    failed.value = answer.ok ? undefined : answer.message;
    if (!answer.ok) return;
    const before = after === undefined ? [] : (found.peek()?.agents ?? []);
    found.value = { agents: [...before, ...answer.value.agents], next: answer.value.next };
  };
  useEffect(() => {
    ended.current = new AbortController();
    wentOn.current = false;
    busy.value = false;
    found.value = undefined;
    const first = async (): Promise<void> => {
      if (!wentOn.current) await ask();
    };
    // A name is looked for in what each agent says, which takes longer.
    void poll(first, host === "" ? POLL_MS : 4 * POLL_MS, ended.current.signal);
    return () => ended.current.abort();
  }, [status, policy, host]);
  const more = async (): Promise<void> => {
    const { signal } = ended.current;
    wentOn.current = true;
    busy.value = true;
    await ask(found.peek()?.next ?? undefined);
    if (!signal.aborted) busy.value = false;
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
        <Choose label="Health" all={statuses} chosen={status} choose={(status) => change({ status })} />
        <Typed label="Policy" given={policy} suggested={policies} take={(policy) => change({ policy })} />
        <Typed label="Host or id" given={host} hint="part of a name, or an id" take={(host) => change({ host })} />
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

/** A text that is taken when it is complete: with Enter, or when the field is left. */
function Typed({ label, given, suggested = [], hint = "", take }: { label: string; given: string; suggested?: readonly string[]; hint?: string; take: (text: string) => void }) {
  const draft = useSignal(given);
  const id = useId();
  // Also when the address changes: with the link of a health, or back.
  useEffect(() => void (draft.value = given), [given]);
  return (
    <Field label={label}>
      <input type="search" value={draft.value} placeholder={hint} list={suggested.length > 0 ? id : undefined} onInput={(event) => (draft.value = event.currentTarget.value)} onChange={() => take(draft.value.trim())} />
      {suggested.length > 0 && (
        <datalist id={id}>
          {suggested.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </Field>
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
