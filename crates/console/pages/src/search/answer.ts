// The answer to a search: one JSON object.
import { postJson, type Answer } from "../data/request";
import { askForSession, session } from "../data/session";
import type { FoundTrace, HistogramBar, LogRow, SpanRow } from "./rows";

/** What every answer says of itself. */
export interface SearchEnd {
  /** Whether it is all there is in the time that was asked for. */
  complete?: boolean;
  /** What was left out, and why, each in a sentence. */
  notes?: string[];
}

export interface LogAnswer extends SearchEnd {
  rows: LogRow[];
  histogram?: HistogramBar[];
}

export interface TraceListAnswer extends SearchEnd {
  traces: FoundTrace[];
}

export interface TraceAnswer extends SearchEnd {
  spans: SpanRow[];
  logs: LogRow[];
}

export interface ServiceAnswer extends SearchEnd {
  services: string[];
}

/** Asks `/console/search/KIND`. */
export async function search<T>(kind: string, query: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<Answer<T>> {
  await askForSession();
  return postJson<T>(`/console/search/${kind}`, JSON.stringify(query), "application/json", session.peek()?.token ?? "", signal);
}
