// Why requests are refused and items dropped, in a sentence each: those of `crates/ledger/src/reason.rs`.

const REFUSED: Readonly<Record<string, string>> = {
  memory: "There was no memory for the body within the time that a request may wait.",
  disk: "The journal could not take it: its quota is used up, or the disk is full or failing.",
  too_large: "The body, as sent or decompressed, is larger than allowed.",
  malformed: "The body contradicts its headers, or violates its format.",
  unsupported: "The content type, encoding or protocol version is not one that is spoken here.",
  timeout: "The headers or the body did not arrive in time.",
  connections: "As many connections as are allowed were open.",
  shutdown: "The gateway was stopping, or not ready yet.",
  method: "The path exists, but not with this method.",
  not_found: "Nothing is served under this path.",
  headers: "The request line or headers break HTTP, are ambiguous, or are too many or too long.",
  abandoned: "The client went away before it was answered.",
  internal: "The gateway failed while serving it; see the log.",
  unauthorized: "The client sent no credentials, or wrong ones.",
  forbidden: "The client is authenticated, but not authorised to send this.",
  rate_limit: "A limit of requests, items or bytes a second was reached.",
  concurrency: "A limit on concurrent requests, or on their bytes, was reached.",
  tenant: "The tenant's name is missing, or not one that can be a name.",
  share: "Memory was short, and the tenant held its fair part of it already.",
  destination: "The destination of forwarded items could not be reached, refused the gateway, or did not respond.",
};

const DROPPED: Readonly<Record<string, string>> = {
  rejected: "The receiver rejected it permanently (a 4xx status other than 429).",
  damaged: "The journal's record can no longer be read.",
  quota: "The journal was full and set to drop the oldest.",
  too_large: "It alone is larger than a request to the peer may be.",
  untranslatable: "The receiver's protocol cannot express it.",
  skipped: "An operator moved the cursor forward.",
  filtered: "A step of the sink's pipeline dropped it.",
  sampled_out: "A step of the sink's pipeline left it out of the sample.",
};

/** Every reason for which a request is refused. */
export const REFUSALS: readonly string[] = Object.keys(REFUSED);

const own = (table: Readonly<Record<string, string>>, reason: string): string => (Object.hasOwn(table, reason) ? (table[reason] ?? "") : "");

export const whyRefused = (reason: string): string => own(REFUSED, reason);
export const whyDropped = (reason: string): string => own(DROPPED, reason);
/** Whether the configuration asks for it: nobody has to look. */
export const isIntended = (reason: string): boolean => reason === "filtered" || reason === "sampled_out";
