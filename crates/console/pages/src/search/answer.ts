// The answer to a search: one JSON object.
import type { Answer } from "../data/request";
import { postAsSession } from "../data/session";
import type { DeadLetter, FoundTrace, HistogramBar, LogRow, PointRow, SpanRow } from "./rows";

/** How every answer ends: what was read, and what is missing. */
export interface SearchEnd {
  /** Rows were left out, since the answer would have been too long. */
  answer_cut: boolean;
  /** There is more than the limit allows. */
  has_more: boolean;
  /** Why rows may be missing, a sentence each; nothing when the answer is complete. */
  incomplete: string[];
  milliseconds: number;
  from_lake: number;
  from_journal: number;
  lake: { files_read: number; files_skipped: number; rows_read: number } | null;
  journal: { since: string | null; records_read: number; rows_read: number };
  /** The same for DuckDB, over the files of the lake. */
  sql: string | null;
}

export interface LogAnswer extends SearchEnd {
  logs: LogRow[];
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

/** One dead letter with its items; those of other signals than its own are not there. */
export interface LetterAnswer extends SearchEnd {
  letter: DeadLetter | null;
  logs?: LogRow[];
  spans?: SpanRow[];
  points?: PointRow[];
  histograms?: PointRow[];
}

/** Asks `/console/search/KIND`. */
export const search = <T>(kind: string, query: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<Answer<T>> => postAsSession<T>(`/console/search/${kind}`, JSON.stringify(query), "application/json", signal);
