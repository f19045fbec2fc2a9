// The shape of `/status.json`. What each number means is said at its field in `crates/console/src/status`.

export type State = "flowing" | "pushing_back" | "spilling" | "draining" | "stopping";
export type Counts = Readonly<Record<string, number>>;

export interface Status {
  state: State;
  reason: string;
  version: string;
  commit?: string;
  at: string | null;
  uptime_seconds: number;
  stopping: boolean;
  refused_lately?: string[];
  memory: Memory;
  destination?: Destination;
  source_pipelines?: SourcePipeline[];
  journal: Journal;
  sinks: Sink[];
  left_behind: LeftBehind[];
  tenants?: Tenants;
  handshakes?: Handshakes;
  fleet?: Fleet;
  books: Books;
}

export interface Memory {
  limit: number;
  origin: string;
  resident: { now: number; peak: number; anonymous: number; file: number } | null;
  heap_live: number;
  declared: DeclaredLine[];
  payload: { total: number; idle: number; shares: ShareLine[] };
  connections_open: number;
  connections_limit: number;
}

export interface DeclaredLine {
  owner: string;
  what: string;
  count: number;
  each: number;
  declared: number;
  used: number | null;
  peak: number | null;
}

export interface ShareLine {
  name: string;
  floor: number;
  at_most: number;
  used: number;
  peak: number;
  waiting: number;
}

export interface Journal {
  dir: string;
  durability: string;
  bytes: number;
  quota: number;
  segments: number;
  oldest_age_seconds: number | null;
  head: number;
  items_total: number;
  items_per_second: number | null;
  full_in_seconds: number | null;
  damage: { records: number; bytes: number; quarantined_segments: number };
  syncs: { count: number; mean_seconds: number };
  trouble: string | null;
}

export interface LastError {
  message: string;
  at: string | null;
}

export interface Sink {
  name: string;
  kind: string;
  target: string;
  lag: { items: number; bytes: number; age_seconds: number | null };
  usual_lag_seconds: number;
  cursor: number;
  in_flight: number;
  /** Requests that may be under way now, where that adapts to the peer. */
  concurrency_limit?: number;
  requests: number;
  last_success: string | null;
  failures: number;
  bytes: number;
  resent: number;
  restarts: number;
  broken: boolean;
  items_per_second: number | null;
  last_error: LastError | null;
  waiting: BlockedIndex[];
  members?: Member[];
  members_left_out?: number;
  pipeline: PipelineStep[];
  pipeline_left_out?: number;
  sampling?: TraceDecisions;
  retry_at: string | null;
  delivered: number;
  dropped: Counts;
}

export interface BlockedIndex {
  index: string;
  records: number;
  documents: number;
  since: string | null;
  reason: string;
}

export interface Member {
  address: string;
  in_ring: boolean;
  behind: boolean;
  share: number | null;
  in_flight: number;
  delivered: number;
  rejected: number;
  conflicts: Counts;
  failures: number;
  handed_off_bytes: number;
  handed_off_requests: number;
  oldest: string | null;
  last_error: LastError | null;
}

export interface PipelineStep {
  pipeline: string;
  step: string;
  items: number;
  filtered: number;
  sampled_out: number;
  failures: number;
}

export interface TraceDecisions {
  undecided: number;
  most_undecided: number;
  remembered: number;
  held_back_bytes: number;
  early: number;
  late_kept: number;
  late_dropped: number;
  forgotten: number;
  unknown: number;
  kept_traces: number;
  unkept_traces: number;
  unkept_spans: number;
  policies: PolicyDecisions[];
  policies_left_out?: number;
}

export interface PolicyDecisions {
  policy: string;
  decision: "kept" | "dropped";
  traces: number;
  spans: number;
}

export interface SourcePipeline {
  source: string;
  steps: PipelineStep[];
}

export interface Destination {
  source: string;
  sink: string;
  in_flight: number;
  requests: number;
  failures: number;
  last_success: string | null;
  last_error: LastError | null;
  failing_since: string | null;
}

export interface LeftBehind {
  name: string;
  items: number;
  bytes: number;
  age_seconds: number | null;
  command: string;
}

export interface Tenants {
  known: number;
  most: number;
  shown: Tenant[];
}

export interface Tenant {
  name: string;
  received: number;
  accepted: number;
  refused: number;
  mostly: string | null;
  open: number;
  items: number;
  bytes: number;
  held: number;
}

export interface Handshakes {
  done: number;
  failed: { reason: string; count: number; advice: string }[];
}

export interface Fleet {
  agents: number;
  waiting: number;
  in_rollout: number;
  by_status: [string, number][];
  by_version: [string, number][];
  check_ins_per_second: number | null;
  refused: number;
  policies: FleetPolicy[];
}

export interface FleetPolicy {
  id: string;
  revision: number;
  agents: number;
  up_to_date: number;
  rollout_seconds: (number | null)[];
}

export interface Books {
  difference: number;
  sources: SourceBook[];
  journal: { accepted: number; handed_over: number; appended: number; difference: number };
  sinks: SinkBook[];
}

export interface SourceBook {
  name: string;
  received: number;
  accepted: number;
  refused: Counts;
  open: number;
  items: Counts;
  items_refused: Counts;
  bytes: number;
  forwarded: number;
  forwarded_open: number;
  forwarded_fates: Counts;
  pipeline?: { received: number; accepted: number; filtered: number; sampled_out: number; difference: number };
  difference: number;
}

export interface SinkBook {
  name: string;
  accepted: number;
  replayed: number;
  delivered: number;
  passed: number;
  queued: number;
  dropped: Counts;
  difference: number;
}
