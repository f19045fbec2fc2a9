// One agent: how it is, what it runs, what it says of its host, and the commands for it.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { componentsOf, leavesOf, showAgent, type AgentDetails, type Component } from "../../data/agents";
import { poll } from "../../data/poll";
import { count } from "../../format/count";
import { harmless } from "../../format/text";
import { Ago } from "../../ui/ago";
import { AttributeList } from "../../ui/attributes";
import { Copy } from "../../ui/copy";
import { Facts } from "../../ui/facts";
import { Name, Stranger } from "../../ui/stranger";
import { Table, type Column } from "../../ui/table";
import { AgentHealth } from "./health";

const POLL_MS = 5_000;
/** Components and units that are shown. */
const MOST_PARTS = 200;
/** Names and values of each kind that are shown; the copy as JSON has all. */
const MOST_LEAVES = 200;

const PARTS: Column<Component>[] = [
  { title: "Part", head: true, cell: ({ id }) => <Name>{id === "" ? "–" : id}</Name> },
  { title: "Health", cell: ({ status }) => <AgentHealth status={status} /> },
  { title: "What it says", wide: true, cell: ({ message }) => <Stranger text={message === "" ? "–" : message} /> },
];

/** Stays open until `close`, and follows the agent. */
export function AgentDrawer({ id, close }: { id: string; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const agent = useSignal<AgentDetails | undefined>(undefined);
  const failed = useSignal<string | undefined>(undefined);
  useEffect(() => {
    dialog.current?.showModal();
    const ended = new AbortController();
    const ask = async (): Promise<void> => {
      const answer = await showAgent(id, ended.signal);
      if (ended.signal.aborted) return;
      failed.value = answer.ok ? undefined : answer.message;
      if (answer.ok) agent.value = answer.value;
    };
    void poll(ask, POLL_MS, ended.signal);
    return () => ended.abort();
  }, []);
  const shown = agent.value;
  return (
    <dialog ref={dialog} class="help drawer" aria-labelledby="agent-title" onClose={close}>
      <header class="card-head">
        <h2 id="agent-title" class="name">
          {harmless(shown?.hostname ?? id)}
        </h2>
        <div class="aside buttons">
          {shown && <Copy text={() => JSON.stringify(shown, null, 2)} label="Copy as JSON" what="this agent" />}
          <button type="button" class="small" autofocus onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      </header>
      {failed.value !== undefined && <p class="say bad">{harmless(failed.value)}</p>}
      {shown ? <Details agent={shown} /> : failed.value === undefined && <p class="say">Reading…</p>}
    </dialog>
  );
}

function Details({ agent }: { agent: AgentDetails }) {
  const components = componentsOf(agent.components, MOST_PARTS);
  return (
    <>
      <Facts
        facts={[
          { name: "id", value: <code>{agent.id}</code> },
          { name: "health", value: <AgentHealth status={agent.status} /> },
          { name: "seen", value: agent.waiting ? "waits here for something to do" : <Ago at={agent.last_seen ?? null} /> },
          { name: "policy", value: `${harmless(agent.policy_id)}, revision ${count(agent.policy_revision)}` },
          { name: "version", value: harmless(agent.version) },
          { name: "enrolled", value: <Ago at={agent.enrolled_at} /> },
          (agent.tags ?? []).length > 0 && { name: "tags", value: harmless((agent.tags ?? []).join(", ")) },
          agent.audit_unenrolled !== undefined && { name: "says it is gone", value: harmless(agent.audit_unenrolled), tone: "warn" },
        ]}
      />
      <div class="below">
        {components.length === 0 ? <p class="none">It has said nothing of its components.</p> : <Table caption="Components" columns={PARTS} rows={components} id={(_, index) => String(index)} />}
        {components.length === MOST_PARTS && <p class="more">the first {MOST_PARTS} are shown</p>}
      </div>
      <AttributeList title="Upgrade" attributes={leavesOf(agent.upgrade_details, MOST_LEAVES)} />
      <AttributeList title="Host and agent" attributes={leavesOf(agent.local_metadata, MOST_LEAVES)} />
      <AttributeList title="Given by its user" attributes={leavesOf(agent.user_provided_metadata, MOST_LEAVES)} />
      <div class="attributes">
        <h3>Commands</h3>
        <div class="buttons">
          <Copy text={`tidegate fleet agent diagnostics ${agent.id}`} label="Copy: diagnostics" what="the command that has the agent send its diagnostics" />
          <Copy text={`tidegate fleet agent upgrade ${agent.id} --version ${agent.version}`} label="Copy: upgrade" what="the command that upgrades the agent, with its present version" />
          <Copy text={`tidegate fleet agent reassign ${agent.id} --policy ${agent.policy_id}`} label="Copy: reassign" what="the command that gives the agent a policy, with its present one" />
          <Copy text={`tidegate fleet agent unenroll ${agent.id}`} label="Copy: unenrol" what="the command that has the agent unenrol" />
        </div>
      </div>
    </>
  );
}
