//! Rights over `_bulk`: the actions beyond `create` and `index`, and the indices.
//!
//! A `_bulk` is executed with the key of the sink, which may do more than any sender should. So the source asks for
//! each item; none of the answers takes an allocation.

use std::sync::Arc;

/// A `_bulk` action that needs an explicit right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkAction {
    /// Change documents.
    Update,
    /// Delete documents.
    Delete,
    /// Have the cluster run a script, in an update.
    Script,
    /// Choose the ingest pipeline.
    Pipeline,
}

/// A set of [`BulkAction`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkActions(u8);

impl BulkAction {
    /// All of them.
    pub const ALL: [BulkAction; 4] =
        [BulkAction::Update, BulkAction::Delete, BulkAction::Script, BulkAction::Pipeline];

    /// The word for it in the file of credentials.
    pub const fn name(self) -> &'static str {
        match self {
            BulkAction::Update => "update",
            BulkAction::Delete => "delete",
            BulkAction::Script => "script",
            BulkAction::Pipeline => "pipeline",
        }
    }
}

impl BulkActions {
    /// None: `create` and `index` only.
    pub const NONE: BulkActions = BulkActions(0);
    /// All of them.
    pub const ALL: BulkActions = BulkActions(0b1111);

    /// These, and `action`.
    #[must_use]
    pub const fn with(self, action: BulkAction) -> BulkActions {
        BulkActions(self.0 | 1 << action as u8)
    }

    /// Whether `action` is among them.
    #[inline]
    pub const fn has(self, action: BulkAction) -> bool {
        self.0 & 1 << action as u8 != 0
    }

    /// Reads words with commas between them.
    pub(super) fn read(text: &str) -> Result<BulkActions, &'static str> {
        let mut actions = BulkActions::NONE;
        for word in text.split(',') {
            let action = BulkAction::ALL.into_iter().find(|action| action.name() == word);
            let action = action.filter(|action| !actions.has(*action)).ok_or(ACTIONS)?;
            actions = actions.with(action);
        }
        if actions.has(BulkAction::Script) && !actions.has(BulkAction::Update) {
            return Err(
                "`bulk=script` needs `update` too: only updates have scripts; write `bulk=update,script`",
            );
        }
        Ok(actions)
    }
}

const ACTIONS: &str = "`bulk=` takes `update`, `delete`, `script` and `pipeline`, each once, with commas between \
                       them; `create` and `index` need no right";
const INDICES: &str = "`indices=` takes 1 to 64 patterns with commas between them, each of lower case letters, digits, \
                       `-_.+@`, `*` for any characters and `{tenant}` for the tenant's name";

/// The most patterns of one list.
const MOST_PATTERNS: usize = 64;
/// The longest name of an index that Elasticsearch takes, in bytes; no pattern is longer.
const LONGEST_PATTERN: usize = 255;
/// The longest name that is looked at: one with date math is longer than what it stands for.
pub const LONGEST_INDEX: usize = 512;
const TENANT: &str = "{tenant}";

/// Patterns for names of indices. `*` stands for any characters and `{tenant}` for the tenant's name; a name that begins
/// with a dot is only matched by a pattern that begins with one. Clones share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indices(Arc<str>);

impl Indices {
    /// Reads patterns with commas between them.
    ///
    /// # Errors
    /// The syntax of patterns, when one is not valid.
    pub fn read(text: &str) -> Result<Indices, &'static str> {
        let is_good = |pattern: &str| {
            let rest = pattern.replace(TENANT, "");
            let allowed =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.+@*".contains(&byte);
            (1..=LONGEST_PATTERN).contains(&pattern.len()) && rest.bytes().all(allowed)
        };
        let all_good = text.split(',').all(is_good) && text.split(',').count() <= MOST_PATTERNS;
        if all_good { Ok(Indices(text.into())) } else { Err(INDICES) }
    }

    /// Whether one of them is that of `name`, for this tenant.
    fn have(&self, name: &[u8], tenant: Option<&str>) -> bool {
        self.0.split(',').any(|pattern| is_matched(pattern, name, tenant))
    }
}

fn is_matched(pattern: &str, name: &[u8], tenant: Option<&str>) -> bool {
    if name.len() > LONGEST_PATTERN || name.starts_with(b".") && !pattern.starts_with('.') {
        return false;
    }
    let mut segments = pattern.split('*');
    let Some(mut rest) = segments.next().and_then(|first| behind(first, name, tenant)) else { return false };
    let Some(last) = segments.next_back() else { return rest.is_empty() };
    for segment in segments {
        // Where a segment is found first, most is left for those behind it.
        let found = (0..=rest.len()).find_map(|from| behind(segment, rest.get(from..)?, tenant));
        let Some(found) = found else { return false };
        rest = found;
    }
    (0..=rest.len()).any(|from| rest.get(from..).and_then(|rest| behind(last, rest, tenant)) == Some(&[]))
}

/// The rest of `name` behind a segment without `*`, if it begins with that.
fn behind<'n>(segment: &str, name: &'n [u8], tenant: Option<&str>) -> Option<&'n [u8]> {
    let mut rest = name;
    for (number, text) in segment.split(TENANT).enumerate() {
        if number > 0 {
            rest = rest.strip_prefix(tenant?.as_bytes())?;
        }
        rest = rest.strip_prefix(text.as_bytes())?;
    }
    Some(rest)
}

/// The `_bulk` rights of one request.
#[derive(Debug, Clone)]
pub struct BulkRights {
    actions: BulkActions,
    /// Without them: all but those that begin with a dot.
    indices: Option<Indices>,
    tenant: Option<tidegate_ledger::TenantHandle>,
    /// Everything is allowed: an operator resends dead letters.
    all: bool,
}

impl BulkRights {
    pub(crate) fn new(
        actions: BulkActions,
        indices: Option<Indices>,
        tenant: Option<tidegate_ledger::TenantHandle>,
    ) -> BulkRights {
        BulkRights { actions, indices, tenant, all: false }
    }

    /// Everything.
    pub(crate) fn all() -> BulkRights {
        BulkRights { actions: BulkActions::ALL, indices: None, tenant: None, all: true }
    }

    /// Whether it may do that.
    #[inline]
    pub const fn has(&self, action: BulkAction) -> bool {
        self.actions.has(action)
    }

    /// Whether it may write to the index of this name, which has no escapes any more. A name that may stand for other
    /// indices than it says (a list, a pattern, another cluster's, one that begins with date math) is nobody's.
    pub fn may_write(&self, index: &[u8]) -> bool {
        if self.all {
            return true;
        }
        let is_one = index.len() <= LONGEST_INDEX && !index.iter().any(|byte| b"*?,:".contains(byte));
        match (index, &self.indices) {
            _ if !is_one => false,
            ([], _) => false,
            // Date math: what it stands for begins as it does.
            ([b'<', first, ..], None) => first.is_ascii_alphanumeric(),
            ([b'<', ..], _) => false,
            ([b'.', ..], None) => false,
            (_, None) => true,
            (name, Some(indices)) => indices.have(name, self.tenant.as_ref().map(|tenant| tenant.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> tidegate_ledger::TenantHandle {
        let ledger = tidegate_ledger::Ledger::new(&tidegate_meters::Registry::new(1), 0);
        ledger.tenant(name).unwrap()
    }

    fn rights(indices: &str, name: &str) -> BulkRights {
        let indices = (!indices.is_empty()).then(|| Indices::read(indices).unwrap());
        BulkRights::new(BulkActions::NONE, indices, (!name.is_empty()).then(|| tenant(name)))
    }

    #[test]
    fn patterns_match_whole_names() {
        let cases: [(&str, &[&str], &[&str]); 7] = [
            ("logs-*-*", &["logs-a-b", "logs--", "logs-a-b-c"], &["logs-a", "xlogs-a-b", "metrics-a-b", ""]),
            ("{tenant}-*", &["shop-", "shop-x"], &["shop", "shopx", "lab-x", "{tenant}-x", "xshop-y"]),
            ("a,b*c", &["a", "bc", "bcc", "bxcxc"], &["ab", "bcx", "a,b", "aa"]),
            ("*", &["a", "shop"], &[".a", ".ds-a", "<a-{now/d}>", "a*", "a,b", "c:a"]),
            (".own-*", &[".own-x"], &[".security-7", "own-x", ".own"]),
            ("x-{tenant}", &["x-shop"], &["x-shop-y", "x-", "x-lab"]),
            ("*{tenant}*-*y", &["shop-y", "a-shop-b-y", "ashopb-yy"], &["shopy", "sho-y", "shop-yx"]),
        ];
        for (patterns, matched, others) in cases {
            let rights = rights(patterns, "shop");
            for name in matched {
                assert!(rights.may_write(name.as_bytes()), "{patterns}: {name}");
            }
            for name in others {
                assert!(!rights.may_write(name.as_bytes()), "{patterns}: {name}");
            }
        }
        assert!(!rights("{tenant}-*", "").may_write(b"-x"), "no tenant has no name");
        // A name that looks like a pattern is a name.
        assert!(!rights("{tenant}", "*").may_write(b"anything"));
    }

    #[test]
    fn without_patterns_everything_is_allowed_but_what_begins_with_a_dot() {
        let rights = rights("", "");
        for name in ["a", "logs-x-y", "Logs", "a.b", "<logs-{now/d}>", "é"] {
            assert!(rights.may_write(name.as_bytes()), "{name}");
        }
        let long = "a".repeat(LONGEST_INDEX + 1);
        for name in [
            "",
            ".",
            ".security-7",
            ".ds-logs-x-y-2026.11.22-000001",
            "<.security-{now/d}>",
            "<{now/d{'.x'}}>",
            "<\\.x>",
            "<",
            "*",
            "logs-*",
            "a,.security-7",
            "remote:a",
            "a::failures",
            "a?",
            &long,
        ] {
            assert!(!rights.may_write(name.as_bytes()), "{name}");
        }
        assert!(BulkRights::all().may_write(b".security-7"));
    }

    #[test]
    fn words_are_read_strictly() {
        let all = BulkActions::read("update,delete,script,pipeline").unwrap();
        assert_eq!(all, BulkActions::ALL);
        assert_eq!(BulkActions::read("delete").unwrap(), BulkActions::NONE.with(BulkAction::Delete));
        for text in
            ["", "create", "update,", ",update", "update,update", "Update", "update;delete", "*", "script"]
        {
            assert!(BulkActions::read(text).is_err(), "{text}");
        }
        let many = ["a"; 65].join(",");
        for text in
            ["", ",", "a,", "A", "a b", "<a>", "{tenan}", "{", "a/b", "a?", "é", &"a".repeat(256), &many]
        {
            assert!(Indices::read(text).is_err(), "{text}");
        }
    }

    /// A matcher that tries everything says the same.
    #[test]
    fn patterns_match_as_a_slow_matcher_does() {
        fn slow(pattern: &[u8], name: &[u8]) -> bool {
            match (pattern, name) {
                ([], name) => name.is_empty(),
                ([b'*', rest @ ..], name) => (0..=name.len()).any(|from| slow(rest, &name[from..])),
                ([first, rest @ ..], [byte, behind @ ..]) => first == byte && slow(rest, behind),
                _ => false,
            }
        }
        let words = |letters: &[char], most: usize| {
            let mut all = vec![String::new()];
            let mut from = 0;
            for _ in 0..most {
                let longer =
                    all[from..].iter().flat_map(|word| letters.iter().map(move |l| format!("{word}{l}")));
                let longer: Vec<String> = longer.collect();
                from = all.len();
                all.extend(longer);
            }
            all
        };
        let names = words(&['a', 'b'], 6);
        for pattern in words(&['a', 'b', '*'], 5) {
            for name in &names {
                let matched = is_matched(&pattern, name.as_bytes(), None);
                assert_eq!(matched, slow(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
            }
        }
    }
}
