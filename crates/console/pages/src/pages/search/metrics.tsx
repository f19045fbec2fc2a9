import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { count } from "../../format/count";
import { harmless } from "../../format/text";
import { route } from "../../router";
import { iso, rangeOf } from "../../search/range";
import { FUNCTIONS, usualFunction, type FoundMetric, type MetricsAnswer, type PlotAnswer } from "../../search/metrics";
import { termsOf } from "../../search/terms";
import { Card, Empty, PageHead } from "../../ui/card";
import { Field } from "../../ui/field";
import { matches } from "../../ui/filter";
import { draftOf, SearchForm, searchFor, TextField, type Draft } from "./form";
import { noteOf, Outcome, Sql } from "./outcome";
import { Plot } from "./plot";
import { shown, useSearch, type Found } from "./use_search";

const MOST_NAMES = 200;
const STEPS = 120;

export function Metrics() {
  const { query } = route.value;
  const draft = useSignal(draftOf(query));
  const key = query.toString();
  useEffect(() => {
    draft.value = draftOf(query);
  }, [key]);
  const metric = query.get("metric") ?? "";
  const time = ["last", "from", "to", "service"].map((name) => query.get(name) ?? "").join("|");
  const names = useSearch<MetricsAnswer>("metrics", time, () => namesQuery(query));
  const metrics = shown(names.value)?.metrics ?? [];
  const known = metrics.find((one) => one.name === metric);
  const plot = useSearch<PlotAnswer>("plot", metric === "" ? undefined : key, () => plotQuery(query, metric, known));
  return (
    <>
      <PageHead title="Metrics">Points in the lake and in the journal behind it. It is no PromQL: for that there is a Prometheus behind a sink.</PageHead>
      <SearchForm page="metrics" draft={draft} busy={plot.value.kind === "busy"}>
        <FunctionField draft={draft} metric={known} />
        <TextField label="By" draft={draft} name="by" placeholder="label, label" />
      </SearchForm>
      {metric === "" ? <Outcome found={names.value} /> : <Outcome found={plot.value} />}
      {names.value.kind !== "missing" && (
        <div class="grid metrics">
          <NamesCard metrics={metrics} chosen={metric} draft={draft} found={names.value} />
          <PlotCard metric={metric} known={known} found={plot.value} select={(from, to) => searchFor("metrics", { ...withoutTime(draft.peek()), from: iso(from * 1000), to: iso(to * 1000) })} />
        </div>
      )}
    </>
  );
}

function FunctionField({ draft, metric }: { draft: Signal<Draft>; metric: FoundMetric | undefined }) {
  const value = draft.value["function"] ?? usualFunction(metric);
  return (
    <>
      <Field label="Function">
        <select value={value} onChange={(event) => (draft.value = { ...draft.value, function: event.currentTarget.value })}>
          {FUNCTIONS.map(([id, title]) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      {value === "quantile" && <TextField label="Quantile" draft={draft} name="quantile" placeholder="0.99" />}
    </>
  );
}

function NamesCard({ metrics, chosen, draft, found }: { metrics: readonly FoundMetric[]; chosen: string; draft: Signal<Draft>; found: Found<MetricsAnswer> }) {
  const filter = useSignal("");
  const all = metrics.filter((metric) => matches(filter.value, metric.name, metric.description ?? ""));
  return (
    <Card title="Names" note={noteOf(metrics.length, found)} class="names">
      <input class="filter" type="search" aria-label="Filter metrics" placeholder="Filter metrics" value={filter} onInput={(event) => (filter.value = event.currentTarget.value)} />
      {found.kind === "found" && all.length === 0 && <Empty title={metrics.length === 0 ? "No metric was found." : "No metric matches."} />}
      <ul class="metric-names">
        {all.slice(0, MOST_NAMES).map((metric) => (
          <li key={metric.name}>
            <button type="button" aria-pressed={metric.name === chosen} title={harmless(metric.description ?? "")} onClick={() => searchFor("metrics", choose(draft.peek(), metric.name))}>
              <span>{harmless(metric.name)}</span>
              <small>{[metric.kind, metric.unit].filter(Boolean).map((text) => harmless(text ?? "")).join(", ")}</small>
            </button>
          </li>
        ))}
      </ul>
      {all.length > MOST_NAMES && <p class="more">and {count(all.length - MOST_NAMES)} more: filter them</p>}
    </Card>
  );
}

/** Another metric has other labels and another function. */
function choose(draft: Draft, metric: string): Draft {
  const { function: _function, by: _by, quantile: _quantile, ...rest } = draft;
  return { ...rest, metric };
}

function PlotCard({ metric, known, found, select }: { metric: string; known: FoundMetric | undefined; found: Found<PlotAnswer>; select: (from: number, to: number) => void }) {
  const answer = shown(found);
  if (metric === "") {
    return (
      <Card title="Plot" class="plot">
        <Empty title="Choose a metric.">Its points are put together in steps over the time that is chosen above.</Empty>
      </Card>
    );
  }
  const labels = known?.labels ?? [];
  return (
    <Card title={harmless(metric)} note={answer ? noteOf(answer.series.length, found) : "searching…"} aside={answer && <Sql answer={answer} />} class="plot">
      {known?.description && <p class="say dim">{harmless(known.description)}</p>}
      {answer && <Plot answer={answer} unit={known?.unit ?? ""} select={select} />}
      {labels.length > 0 && <p class="more">Labels: {labels.map(harmless).join(", ")}</p>}
    </Card>
  );
}

function withoutTime(draft: Draft): Draft {
  const { last: _last, from: _from, to: _to, ...rest } = draft;
  return rest;
}

function namesQuery(query: URLSearchParams): Record<string, unknown> {
  const { from, to } = rangeOf(query, Date.now());
  return { from: iso(from), to: iso(to), service: query.get("service") || undefined };
}

function plotQuery(query: URLSearchParams, metric: string, known: FoundMetric | undefined): Record<string, unknown> {
  const { from, to } = rangeOf(query, Date.now());
  const by = (query.get("by") ?? "").split(/[\s,]+/).filter((name) => name !== "");
  const chosen = query.get("function") || usualFunction(known ?? { name: metric });
  return {
    ...namesQuery(query),
    metric,
    from: iso(from),
    to: iso(to),
    function: chosen,
    ...(chosen === "quantile" ? { quantile: Number(query.get("quantile") || "0.99") } : {}),
    labels: termsOf(query.get("attributes") ?? ""),
    by,
    steps: STEPS,
  };
}
