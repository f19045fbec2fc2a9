//! The answer to a `_bulk`, read as it comes: whether there were errors, and if so what became of each item. No tree
//! is made of it, and nothing kept but a byte for each item and the words of some errors.

/// The deepest nesting of an answer.
const MAX_DEPTH: u32 = 60;
/// The most bytes of a name or a value that are kept.
const MAX_TOKEN_BYTES: usize = 512;
/// The most kinds of errors that are told apart; others count with the last.
const MAX_ERROR_KINDS: usize = 16;

/// The outcome of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemOutcome {
    /// It is there.
    Done,
    /// To be sent again: there is no room for it now, or the answer does not say.
    Later,
    /// Its index takes nothing now.
    Unavailable,
    /// Something went wrong with it that may go wrong again.
    Fault,
    /// There was something else under its id.
    Conflict,
    /// Not wanted, for the error of this number.
    Refused(u8),
}

/// The contents of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BulkResponse {
    /// The value of `errors`, if present.
    pub(super) errors: Option<bool>,
    /// A code for each item so far, from the first that is not done.
    fates: Vec<u8>,
    /// Items that were seen.
    pub(super) seen: usize,
    /// The errors that items were refused for; of the first conflict; of the last that is worth another attempt.
    pub(super) refusals: Vec<String>,
    pub(super) conflict: Option<String>,
    pub(super) later: Option<String>,
    /// The last error of a document whose index takes nothing now; the last for which something went wrong.
    pub(super) unavailable: Option<String>,
    pub(super) fault: Option<String>,
}

const DONE: u8 = 0;
const LATER: u8 = 1;
const CONFLICT: u8 = 2;
const UNAVAILABLE: u8 = 3;
const FAULT: u8 = 4;
const REFUSED: u8 = 5;

/// The meaning of a document's error beyond its own outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemError {
    /// The node has more to do than it can.
    Pressure,
    /// A shard, or all of an index, takes nothing now: it is red, its node left, its disk is full.
    Unavailable,
    /// Anything else that is no fault of the document's by its status.
    Fault,
}

impl ItemError {
    fn of(status: u16, kind: &str) -> Option<ItemError> {
        const PASSING: [&str; 6] = [
            "node_closed",
            "node_disconnected",
            "node_not_connected",
            "shard_closed",
            "shard_not",
            "timeout",
        ];
        match status {
            _ if kind.starts_with("es_rejected") => Some(ItemError::Pressure),
            // A disk beyond its watermark is said like this, by index.
            429 if kind.starts_with("cluster_block") => Some(ItemError::Unavailable),
            429 => Some(ItemError::Pressure),
            408 | 502..=504 => Some(ItemError::Unavailable),
            500..=599 if PASSING.iter().any(|passing| kind.contains(passing)) => Some(ItemError::Unavailable),
            500..=599 => Some(ItemError::Fault),
            _ => None,
        }
    }
}

impl BulkResponse {
    /// The outcome of the item of this number. An item missing from the answer is not done.
    pub(super) fn fate(&self, item: usize) -> ItemOutcome {
        if self.errors == Some(false) {
            return ItemOutcome::Done;
        }
        match self.fates.get(item).copied() {
            Some(LATER) => ItemOutcome::Later,
            Some(CONFLICT) => ItemOutcome::Conflict,
            Some(UNAVAILABLE) => ItemOutcome::Unavailable,
            Some(FAULT) => ItemOutcome::Fault,
            Some(code) if code >= REFUSED => ItemOutcome::Refused(code - REFUSED),
            Some(_) => ItemOutcome::Done,
            None if item < self.seen => ItemOutcome::Done,
            None => ItemOutcome::Later,
        }
    }

    /// Whether everything was taken, of so many items.
    pub(super) fn is_clean(&self, items: usize) -> bool {
        self.errors == Some(false) || (self.fates.is_empty() && self.seen >= items)
    }

    fn enter(&mut self, entry: ResponseItem, most: usize) {
        if self.seen >= most {
            return;
        }
        let code = match entry.status {
            status if let Some(trouble) = ItemError::of(status, &entry.kind) => {
                let (code, said) = match trouble {
                    ItemError::Pressure => (LATER, &mut self.later),
                    ItemError::Unavailable => (UNAVAILABLE, &mut self.unavailable),
                    ItemError::Fault => (FAULT, &mut self.fault),
                };
                *said = Some(entry.words());
                code
            }
            200..=299 => DONE,
            // A deletion of what is not there: it is not there.
            404 if entry.deletes => DONE,
            409 => {
                self.conflict.get_or_insert_with(|| entry.words());
                CONFLICT
            }
            _ => {
                let words = entry.words();
                let kind = self.refusals.iter().position(|known| *known == words).unwrap_or_else(|| {
                    if self.refusals.len() < MAX_ERROR_KINDS {
                        self.refusals.push(words);
                    }
                    self.refusals.len() - 1
                });
                REFUSED.saturating_add(u8::try_from(kind).unwrap_or(u8::MAX))
            }
        };
        if code != DONE || !self.fates.is_empty() {
            self.fates.resize(self.seen, DONE);
            self.fates.push(code);
        }
        self.seen += 1;
    }
}

/// One item of an answer while it is read.
#[derive(Debug, Default)]
struct ResponseItem {
    status: u16,
    deletes: bool,
    kind: String,
    reason: String,
}

impl ResponseItem {
    fn words(&self) -> String {
        let ResponseItem { status, kind, reason, .. } = self;
        match (kind.is_empty(), reason.is_empty()) {
            (true, _) => format!("{status}"),
            (false, true) => format!("{status} {kind}"),
            (false, false) => format!("{status} {kind}: {reason}"),
        }
    }
}

/// Reads an answer piece by piece.
#[derive(Debug)]
pub(super) struct ResponseReader {
    reply: BulkResponse,
    /// The most items that there can be.
    most: usize,
    depth: u32,
    /// A bit for each level that is an object.
    objects: u64,
    lexeme: JsonToken,
    token: Vec<u8>,
    /// A name of the object at hand, until its value ends.
    name: Vec<u8>,
    /// A value is next, and not a name.
    valued: bool,
    in_items: bool,
    in_error: bool,
    entry: ResponseItem,
    broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonToken {
    Between,
    Text,
    Escape,
    /// A number or a word.
    Word,
}

impl ResponseReader {
    /// A reader of the answer to a request with so many items.
    pub(super) fn new(items: usize) -> ResponseReader {
        ResponseReader {
            reply: BulkResponse::default(),
            most: items,
            depth: 0,
            objects: 0,
            lexeme: JsonToken::Between,
            token: Vec::new(),
            name: Vec::new(),
            valued: true,
            in_items: false,
            in_error: false,
            entry: ResponseItem::default(),
            broken: false,
        }
    }

    /// Reads on.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        // The bytes after that are irrelevant.
        if self.reply.errors == Some(false) || self.broken {
            return;
        }
        for byte in bytes {
            self.step(*byte);
        }
    }

    /// The parsed answer; `None` if it is not an answer to a `_bulk`.
    pub(super) fn finish(self) -> Option<BulkResponse> {
        let said = self.reply.errors == Some(false) || (self.depth == 0 && !self.broken);
        (said && (self.reply.errors.is_some() || self.reply.seen > 0)).then_some(self.reply)
    }

    fn step(&mut self, byte: u8) {
        match self.lexeme {
            JsonToken::Text => match byte {
                b'"' => {
                    self.lexeme = JsonToken::Between;
                    self.text();
                }
                b'\\' => self.lexeme = JsonToken::Escape,
                _ => self.keep(byte),
            },
            JsonToken::Escape => {
                self.lexeme = JsonToken::Text;
                // Good enough for people to read, which is what it is for.
                self.keep(match byte {
                    b'n' | b't' | b'r' => b' ',
                    other => other,
                });
            }
            JsonToken::Word if !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') => {
                self.keep(byte)
            }
            JsonToken::Word => {
                self.lexeme = JsonToken::Between;
                self.value();
                self.mark(byte);
            }
            JsonToken::Between => self.mark(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.token.len() < MAX_TOKEN_BYTES {
            self.token.push(byte);
        }
    }

    /// A byte between names and values.
    fn mark(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.token.clear();
                self.lexeme = JsonToken::Text;
            }
            b'{' | b'[' => self.open(byte == b'{'),
            b'}' | b']' => self.close(),
            b',' => self.valued = !self.is_object(),
            b':' => self.valued = true,
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                self.token.clear();
                self.token.push(byte);
                self.lexeme = JsonToken::Word;
            }
        }
    }

    fn is_object(&self) -> bool {
        self.depth > 0 && self.objects >> self.depth & 1 == 1
    }

    fn text(&mut self) {
        if self.valued {
            self.value();
        } else {
            std::mem::swap(&mut self.name, &mut self.token);
        }
    }

    /// A text, a number or a word has ended that is a value.
    fn value(&mut self) {
        let text = || String::from_utf8_lossy(&self.token).into_owned();
        match (self.depth, self.name.as_slice()) {
            (1, b"errors") => self.reply.errors = Some(self.token == b"true"),
            (4, b"status") if self.in_items => {
                self.entry.status = text().parse().unwrap_or_default();
            }
            // Elasticsearch before version 2, and some proxies.
            (4, b"error") if self.in_items => self.entry.kind = text(),
            (5, b"type") if self.in_error => self.entry.kind = text(),
            (5, b"reason") if self.in_error => self.entry.reason = text(),
            _ => {}
        }
    }

    fn open(&mut self, object: bool) {
        match (self.depth, self.name.as_slice()) {
            (1, b"items") => self.in_items = !object,
            (3, name) if self.in_items => {
                self.entry = ResponseItem { deletes: name == b"delete", ..ResponseItem::default() };
            }
            (4, b"error") if self.in_items => self.in_error = true,
            _ => {}
        }
        if self.depth >= MAX_DEPTH {
            self.broken = true;
            return;
        }
        self.depth += 1;
        let bit = 1 << self.depth;
        self.objects = if object { self.objects | bit } else { self.objects & !bit };
        self.valued = !object;
        self.name.clear();
    }

    fn close(&mut self) {
        match self.depth {
            0 => self.broken = true,
            2 => self.in_items = false,
            4 if self.in_items => {
                let entry = std::mem::take(&mut self.entry);
                self.reply.enter(entry, self.most);
            }
            5 => self.in_error = false,
            _ => {}
        }
        self.depth = self.depth.saturating_sub(1);
        self.name.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, items: usize, piece: usize) -> Option<BulkResponse> {
        let mut reader = ResponseReader::new(items);
        text.as_bytes().chunks(piece).for_each(|piece| reader.read(piece));
        reader.finish()
    }

    const MIXED: &str = r#"{"took":30,"errors":true,"items":[
        {"index":{"_index":"a","_id":"1","status":201,"_shards":{"status":500}}},
        {"create":{"status":429,"error":{"type":"es_rejected_execution_exception","reason":"queue \"full\""}}},
        {"create":{"status":409,"error":{"type":"version_conflict_engine_exception","reason":"there"}}},
        {"index":{"status":400,"error":{"type":"document_parsing_exception","reason":"field [a]",
            "caused_by":{"type":"x","reason":"y"}}}},
        {"delete":{"status":404,"result":"not_found"}},
        {"update":{"status":404,"error":{"type":"document_missing_exception","reason":"[1]: missing"}}},
        {"index":{"status":503,"error":{"type":"unavailable_shards_exception"}}},
        {"index":{"status":500,"error":{"type":"null_pointer_exception"}}},
        {"index":{"status":503,"error":{"type":"es_rejected_execution_exception"}}},
        {"index":{"status":429,"error":{"type":"cluster_block_exception"}}}
    ]}"#;

    /// Each item has its own fate, in whatever pieces the answer comes.
    #[test]
    fn every_item_has_its_own_fate() {
        for piece in 1..MIXED.len() {
            let reply = read(MIXED, 10, piece).unwrap();
            let fates: Vec<ItemOutcome> = (0..10).map(|item| reply.fate(item)).collect();
            let wanted = [
                ItemOutcome::Done,
                ItemOutcome::Later,
                ItemOutcome::Conflict,
                ItemOutcome::Refused(0),
                ItemOutcome::Done,
                ItemOutcome::Refused(1),
                ItemOutcome::Unavailable,
                ItemOutcome::Fault,
                ItemOutcome::Later,
                ItemOutcome::Unavailable,
            ];
            assert_eq!(fates, wanted, "in pieces of {piece}");
            assert!(!reply.is_clean(10));
            assert_eq!(reply.refusals[0], "400 document_parsing_exception: field [a]");
            assert_eq!(reply.refusals[1], "404 document_missing_exception: [1]: missing");
            assert_eq!(reply.later.as_deref(), Some("503 es_rejected_execution_exception"));
            assert_eq!(reply.fault.as_deref(), Some("500 null_pointer_exception"));
            assert_eq!(reply.unavailable.as_deref(), Some("429 cluster_block_exception"));
        }
    }

    /// The usual answer is read no further than it has to be, and one that ends early is believed as far as it goes.
    #[test]
    fn a_response_without_errors_is_recognized_by_its_beginning() {
        let reply = read(r#"{"errors":false,"took":0,"items":[{"create":{"status":201}}]}"#, 1, 7).unwrap();
        assert!(reply.is_clean(1));
        assert!(read(r#"{"took":3,"errors":false,"items":[{"cre"#, 1, 9).unwrap().is_clean(1));
        assert_eq!(read(r#"{"took":3,"errors":true,"items":[{"create":{"status":201}}"#, 1, 9), None);
        assert_eq!(read("<html>", 1, 3), None);
        assert_eq!(read("", 1, 3), None);
        assert_eq!(read(r#"{"status":"ok"}"#, 1, 3), None);
        assert!(read(&"[".repeat(1000), 1, 10).is_none());
    }

    /// Without the word about errors the items themselves are counted; those that are missing are sent again.
    #[test]
    fn items_that_the_answer_does_not_have_are_not_done() {
        let reply = read(r#"{"items":[{"create":{"status":201}},{"create":{"status":201}}]}"#, 3, 5).unwrap();
        assert_eq!((reply.fate(1), reply.fate(2)), (ItemOutcome::Done, ItemOutcome::Later));
        assert!(!reply.is_clean(3) && reply.is_clean(2));
    }

    /// However many errors there are, what is kept of them is bounded.
    #[test]
    fn distinct_errors_are_kept_up_to_a_bound() {
        let items: Vec<String> = (0..1000)
            .map(|n| {
                format!(
                    r#"{{"index":{{"status":400,"error":{{"type":"t","reason":"{n}{}"}}}}}}"#,
                    "x".repeat(600)
                )
            })
            .collect();
        let reply = read(&format!(r#"{{"errors":true,"items":[{}]}}"#, items.join(",")), 1000, 100).unwrap();
        assert_eq!(reply.refusals.len(), MAX_ERROR_KINDS);
        assert!(reply.refusals.iter().all(|words| words.len() < MAX_TOKEN_BYTES + 20));
        assert_eq!(reply.fate(999), ItemOutcome::Refused(MAX_ERROR_KINDS as u8 - 1));
    }
}
