import { part } from "../../data/store";
import type { Destination } from "../../data/status";
import { count } from "../../format/count";
import { harmless } from "../../format/text";
import { Ago } from "../../ui/ago";
import { Card } from "../../ui/card";
import { Facts } from "../../ui/facts";
import { Stranger } from "../../ui/stranger";

const destination = part((status): Destination | undefined => status.destination, undefined);

/** The cluster that answers a `_bulk` itself. */
export function DestinationCard() {
  const all = destination.value;
  if (!all) return null;
  const fails = all.failing_since !== null;
  return (
    <Card title="Destination" note={`${harmless(all.source)}, answered by the cluster of ${harmless(all.sink)}`}>
      <Facts
        facts={[
          { name: "requests", value: `${count(all.requests)} answered, ${count(all.failures)} failed, ${count(all.in_flight)} in flight` },
          { name: "last success", value: <Ago at={all.last_success} /> },
          fails && { name: "failing since", value: <Ago at={all.failing_since} />, tone: "bad" },
          all.last_error !== null && {
            name: "last error",
            tone: fails ? "bad" : "dim",
            value: (
              <>
                <Ago at={all.last_error.at} />: <Stranger text={all.last_error.message} most={300} />
              </>
            ),
          },
        ]}
      />
    </Card>
  );
}
