import { memoryParts, overhead, payloadUsed } from "../../data/memory";
import { part } from "../../data/store";
import type { Memory } from "../../data/status";
import { bytes } from "../../format/bytes";
import { count, percent } from "../../format/count";
import { link } from "../../router";
import { Card } from "../../ui/card";
import { StackedBar, type BarMark } from "../../ui/stacked_bar";

const memory = part((status): Memory | undefined => status.memory, undefined);

/** The budget as one bar: who holds it, and what is resident against it. */
export function MemoryCard() {
  const all = memory.value;
  if (!all) return null;
  return (
    <Card title="Memory" note={note(all)} aside={<a href={link("memory")}>Details</a>} class="memory">
      <MemoryBar memory={all} />
    </Card>
  );
}

function note(memory: Memory): string {
  if (!memory.resident) return `budget ${bytes(memory.limit)}; what is resident is not known here`;
  return `${percent(memory.resident.now, memory.limit)} % of ${bytes(memory.limit)} resident`;
}

export function MemoryBar({ memory }: { memory: Memory }) {
  const { limit, resident } = memory;
  const parts = memoryParts(memory);
  const marks: BarMark[] = resident
    ? [
        { name: `resident now: ${bytes(resident.now)}`, part: resident.now / limit, kind: "now" },
        { name: `resident at most: ${bytes(resident.peak)}`, part: resident.peak / limit, kind: "peak" },
      ]
    : [];
  const held = overhead(memory) + payloadUsed(memory) + memory.payload.idle;
  const waiting = memory.payload.shares.filter((share) => share.waiting > 0);
  return (
    <>
      <StackedBar label={`Memory: ${bytes(held)} of ${bytes(limit)} held`} parts={parts.map((part) => ({ name: `${part.name}: ${bytes(part.bytes)}`, part: part.bytes / limit, color: part.color }))} marks={marks} />
      <ul class="legend">
        {parts.map((part) => (
          <li key={part.name}>
            <i class={`key ${part.color}`} aria-hidden="true" />
            <span class="legend-name">{part.name}</span>
            <span class="legend-value">{bytes(part.bytes)}</span>
            {part.what !== "" && <span class="legend-what">{part.what}</span>}
          </li>
        ))}
        <li>
          <i class="key free" aria-hidden="true" />
          <span class="legend-name">free</span>
          <span class="legend-value">{bytes(Math.max(0, limit - held))}</span>
        </li>
        {resident && (
          <li>
            <i class="key mark now" aria-hidden="true" />
            <span class="legend-name">resident</span>
            <span class={resident.now > limit ? "legend-value bad" : "legend-value"}>{bytes(resident.now)}</span>
          </li>
        )}
        {resident && (
          <li>
            <i class="key mark peak" aria-hidden="true" />
            <span class="legend-name">peak</span>
            <span class={resident.peak > limit ? "legend-value bad" : "legend-value"}>{bytes(resident.peak)}</span>
            <span class="legend-what">since the start</span>
          </li>
        )}
      </ul>
      {waiting.length > 0 && (
        <p class="say bad">
          {waiting.map((share) => `${count(share.waiting)} wait for memory of the share “${share.name}”`).join("; ")}.
        </p>
      )}
    </>
  );
}
