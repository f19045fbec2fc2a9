import type { Member, Sink } from "../../data/status";
import { sum } from "../../data/counters";
import { bytes } from "../../format/bytes";
import { count, plural } from "../../format/count";
import { words } from "../../format/text";
import { Ago } from "../../ui/ago";
import { Badge } from "../../ui/badge";
import { Card } from "../../ui/card";
import { Dash } from "../../ui/dash";
import { Name, Stranger } from "../../ui/stranger";
import { Table, type Column } from "../../ui/table";

const COLUMNS: Column<Member>[] = [
  { title: "Member", head: true, cell: (member) => <Name>{member.address}</Name> },
  { title: "State", cell: (member) => <Badge tone={member.behind ? "bad" : member.in_ring ? "good" : "idle"}>{member.behind ? "behind" : member.in_ring ? "takes" : "left the ring"}</Badge> },
  { title: "Keys", right: true, cell: (member) => (member.share === null ? "–" : `${(member.share * 100).toFixed(1)} %`) },
  { title: "In flight", right: true, minor: true, cell: (member) => count(member.in_flight) },
  { title: "Copies taken", right: true, minor: true, cell: (member) => count(member.delivered) },
  { title: "Rejected", right: true, minor: true, cell: (member) => <span class={member.rejected > 0 ? "warn" : "dim"}>{count(member.rejected)}</span> },
  { title: "On disk", right: true, cell: onDisk },
  { title: "What it says", wide: true, cell: says },
];

function onDisk(member: Member) {
  if (member.handed_off_requests === 0) return <span class="dim">none</span>;
  return (
    <>
      {bytes(member.handed_off_bytes)}
      <div class="sub">
        {plural(member.handed_off_requests, "request")}, since <Ago at={member.oldest} />
      </div>
    </>
  );
}

function says(member: Member) {
  const conflicts = sum(member.conflicts) > 0 ? Object.entries(member.conflicts).map(([reason, times]) => `${count(times)} ${words(reason)}`) : [];
  const error = member.behind && member.last_error ? [member.last_error.message] : [];
  const all = [...error, ...conflicts].join("; ");
  return all === "" ? <Dash /> : <Stranger text={all} most={120} />;
}

/** The members that a sink spreads items over. */
export function MembersCard({ sink }: { sink: Sink }) {
  const members = sink.members ?? [];
  if (members.length === 0) return null;
  const more = sink.members_left_out ?? 0;
  return (
    <Card title="Members" class="wide" note={more > 0 ? `and ${count(more)} more: /metrics has them` : undefined}>
      <Table caption="Members of the ring" columns={COLUMNS} rows={members} id={(member) => member.address} />
    </Card>
  );
}
