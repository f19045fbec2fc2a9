// The agents that are managed here: health, versions, how far policies have come, and each of them.
import { part } from "../../data/store";
import type { Fleet, FleetPolicy } from "../../data/status";
import { compact, count, percent } from "../../format/count";
import { duration } from "../../format/duration";
import { harmless } from "../../format/text";
import { link } from "../../router";
import { Card, Empty, PageHead } from "../../ui/card";
import { Dash } from "../../ui/dash";
import { Facts } from "../../ui/facts";
import { StackedBar } from "../../ui/stacked_bar";
import { Name } from "../../ui/stranger";
import { Table, type Column } from "../../ui/table";
import { AgentList } from "./list";

const fleet = part((status): Fleet | undefined => status.fleet, undefined);

const after = (seconds: number | null | undefined) => (seconds === null || seconds === undefined ? <Dash /> : duration(seconds));

const POLICIES: Column<FleetPolicy>[] = [
  { title: "Policy", head: true, cell: (policy) => <Name>{policy.id}</Name> },
  { title: "Revision", right: true, cell: (policy) => count(policy.revision) },
  { title: "Agents", right: true, cell: (policy) => count(policy.agents) },
  {
    title: "Up to date",
    cell: (policy) => (
      <>
        <StackedBar label={`${percent(policy.up_to_date, policy.agents)} percent up to date`} parts={[{ name: "up to date", part: policy.up_to_date / Math.max(1, policy.agents), color: "part1" }]} />
        <div class="sub">
          {count(policy.up_to_date)} ({percent(policy.up_to_date, policy.agents)} %)
        </div>
      </>
    ),
  },
  { title: "Half after", right: true, cell: (policy) => after(policy.rollout_seconds[0]) },
  { title: "99 % after", right: true, cell: (policy) => after(policy.rollout_seconds[1]) },
  { title: "All after", right: true, cell: (policy) => after(policy.rollout_seconds[2]) },
];

const HEALTH_COLORS: Readonly<Record<string, string>> = { online: "part1", degraded: "warn", starting: "part3", error: "bad", disconnected: "part0", unknown: "part0" };
const healthColor = (name: string): string => HEALTH_COLORS[name] ?? "part2";

export function Agents() {
  const all = fleet.value;
  if (!all) {
    return (
      <>
        <PageHead title="Agents" />
        <Empty title="No Elastic Agents are managed here.">Set <code>listen.fleet</code> to enrol some. The collectors of <code>listen.opamp</code> are not shown here: <code>tidegate fleet collector ls</code> lists them.</Empty>
      </>
    );
  }
  const known = all.by_status.reduce((sum, [, agents]) => sum + agents, 0);
  return (
    <>
      <PageHead title="Agents">
        {count(all.agents)} have enrolled; {count(all.waiting)} wait here for something to do
        {all.in_rollout > 0 ? `; ${count(all.in_rollout)} are about to get a policy` : ""}.
      </PageHead>
      <div class="grid">
        <Card title="Health" class="half">
          <StackedBar label="Agents by health" parts={all.by_status.map(([name, agents]) => ({ name: `${harmless(name)}: ${count(agents)}`, part: agents / Math.max(1, known), color: healthColor(name) }))} />
          <ul class="legend">
            {all.by_status.map(([name, agents]) => (
              <li key={name}>
                <i class={`key ${healthColor(name)}`} aria-hidden="true" />
                <a class="legend-name" href={link("agents", undefined, { status: name })}>
                  {harmless(name)}
                </a>
                <span class="legend-value">{count(agents)}</span>
              </li>
            ))}
          </ul>
        </Card>
        <Card title="Numbers" class="half">
          <Facts
            facts={[
              all.check_ins_per_second !== null && { name: "check-ins", value: `${compact(all.check_ins_per_second)}/s` },
              { name: "refused", value: count(all.refused), tone: all.refused > 0 ? "warn" : undefined },
              ...all.by_version.map(([version, agents]) => ({ name: harmless(version), value: `${count(agents)} (${percent(agents, all.agents)} %)` })),
            ]}
          />
        </Card>
        <AgentList statuses={all.by_status.map(([name]) => name)} policies={all.policies.map(({ id }) => id)} />
        <Card title="Policies" class="wide" note="those with most agents that have an older revision">
          <Table caption="Policies" columns={POLICIES} rows={all.policies} id={(policy) => policy.id} none="No policy yet." />
        </Card>
      </div>
    </>
  );
}
