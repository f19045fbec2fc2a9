// The tenants: who sends most, who holds memory, who is refused.
import { useComputed, useSignal } from "@preact/signals";
import { whyRefused } from "../data/reasons";
import { part, status } from "../data/store";
import type { Tenant, Tenants as TenantsStatus } from "../data/status";
import { bytes } from "../format/bytes";
import { count } from "../format/count";
import { harmless, words } from "../format/text";
import { link } from "../router";
import { Card, Empty, PageHead } from "../ui/card";
import { EquationLine } from "../ui/equation";
import { Facts } from "../ui/facts";
import { FilterBox, matches } from "../ui/filter";
import { Name } from "../ui/stranger";
import { Table, type Column } from "../ui/table";

const tenants = part((status): TenantsStatus | undefined => status.tenants, undefined);

type Key = "bytes" | "items" | "received" | "refused" | "open" | "held";
const NUMBERS: [Key, string, (value: number) => string][] = [
  ["items", "Items", count],
  ["bytes", "Bytes", bytes],
  ["received", "Requests", count],
  ["refused", "Refused", count],
  ["open", "Open", count],
  ["held", "Holds", bytes],
];

export function Tenants() {
  const sort = useSignal<Key>("bytes");
  const filter = useSignal("");
  const rows = useComputed(() => {
    const shown = (tenants.value?.shown ?? []).filter((tenant) => matches(filter.value, tenant.name));
    return shown.sort((a, b) => b[sort.value] - a[sort.value]);
  });
  const all = tenants.value;
  if (!all) {
    return (
      <>
        <PageHead title="Tenants" />
        <Empty title="There are no tenants here.">Everything belongs to the default tenant. Tenants come from credentials, or from a header: see <code>access</code> and <code>tenants</code> in the configuration.</Empty>
      </>
    );
  }
  const full = all.known >= all.most;
  return (
    <>
      <PageHead title="Tenants" aside={<FilterBox value={filter} label="Filter tenants" />}>
        {count(all.known)} of at most {count(all.most)} are counted apart{full ? "; later ones share the entry “other”" : ""}.
        {all.known > all.shown.length && ` The ${count(all.shown.length)} that hold or were refused most are shown; /metrics has more.`}
      </PageHead>
      <Card title="Traffic since the start">
        <Table caption="Tenants" columns={columns(sort.value, (key) => (sort.value = key), all.shown)} rows={rows.value} id={(tenant) => tenant.name} none="No tenant matches." />
      </Card>
    </>
  );
}

function columns(sorted: Key, sort: (key: Key) => void, all: readonly Tenant[]): Column<Tenant>[] {
  const most = Math.max(1, ...all.map((tenant) => tenant[sorted]));
  return [
    {
      title: "Tenant",
      head: true,
      cell: (tenant) => (
        <>
          <a href={link("tenants", tenant.name)}>
            <Name most={48}>{tenant.name}</Name>
          </a>
          <i class="meter" style={{ width: `${(tenant[sorted] / most) * 100}%` }} aria-hidden="true" />
        </>
      ),
    },
    ...NUMBERS.map(
      ([key, title, format]): Column<Tenant> => ({
        title,
        right: true,
        sort: () => sort(key),
        sorted: key === sorted ? "descending" : undefined,
        cell: (tenant) => (
          <>
            <span class={tenant[key] === 0 ? "dim" : key === "refused" ? "warn" : ""}>{format(tenant[key])}</span>
            {key === "refused" && tenant.mostly !== null && <div class="sub">mostly {words(tenant.mostly)}</div>}
          </>
        ),
      }),
    ),
  ];
}

export function TenantPage({ name }: { name: string }) {
  const tenant = useComputed(() => status.value?.tenants?.shown.find((tenant) => tenant.name === name)).value;
  return (
    <>
      <p class="back">
        <a href={link("tenants")}>← Tenants</a>
      </p>
      <PageHead title={<span class="cut">{harmless(name)}</span>}>Since the start of the process.</PageHead>
      {tenant ? (
        <div class="grid">
          <Card title="Numbers" class="half">
            <Facts
              facts={[
                { name: "items", value: count(tenant.items) },
                { name: "bytes", value: bytes(tenant.bytes) },
                { name: "requests", value: count(tenant.received) },
                { name: "open", value: count(tenant.open) },
                { name: "holds", value: `${bytes(tenant.held)} of memory` },
              ]}
            />
          </Card>
          <Card title="Refusals" class="half">
            {tenant.mostly === null ? (
              <p class="say">No request of this tenant was refused.</p>
            ) : (
              <>
                <p class="say">
                  {count(tenant.refused)} requests were refused, mostly for the reason <b>{words(tenant.mostly)}</b>. {whyRefused(tenant.mostly)}
                </p>
                <a href={link("rejects")}>The last refused requests</a>
              </>
            )}
          </Card>
          <Card title="Books" class="wide">
            <ul class="equations">
              <EquationLine
                equation={{
                  name: "Requests",
                  left: [["received", tenant.received]],
                  right: [["accepted", tenant.accepted], ["refused", tenant.refused], ["open", tenant.open]],
                  difference: tenant.received - tenant.accepted - tenant.refused - tenant.open,
                }}
              />
            </ul>
          </Card>
        </div>
      ) : (
        <Empty title="This tenant is not among those that are shown.">
          The console shows the tenants that hold or were refused most; <a href="/metrics">/metrics</a> has the others.
        </Empty>
      )}
    </>
  );
}
