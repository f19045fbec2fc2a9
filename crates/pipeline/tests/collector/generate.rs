//! Random statements over values of all kinds, so that most statements run and many fail.

use super::context::Context;

/// Numbers from a seed (SplitMix64), the same on every machine.
pub(crate) struct Generator {
    state: u64,
    /// The context of the statements.
    context: &'static Context,
}

pub(super) const KEYS: [&str; 9] = ["a", "b", "c", "m", "l", "s", "e", "http.method", "key with space"];
pub(super) const TEXTS: [&str; 14] = [
    "",
    "x",
    "abc",
    "a,b;c",
    "GET /api/v1/items?id=42",
    "12",
    "-3.5",
    "true",
    "é漢字",
    "{\"k\":[1,\"v\",null]}",
    "k=v a=b",
    "me@here.org",
    "2024-03-01T10:00:00Z",
    "10.1.2.3",
];
const PATTERNS: [&str; 10] =
    ["a", "^a", "b*", "[a-c]+", "(\\\\w+)@(\\\\w+)", "(?i)GET", "\\\\d+", "x?", "^$", "(?P<first>.)(.)?"];
const REPLACEMENTS: [&str; 7] = ["", "X", "<$1>", "${2}-$1", "$first$$", "$0$9", "$$1"];
const GLOBS: [&str; 6] = ["*", "a*", "?bc", "[a-c]*", "{abc,x}", "*@*"];

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        Generator { state: seed, context: &super::context::LOG }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    pub(super) fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    /// One to four statements of a context.
    pub(crate) fn statements(&mut self, context: &'static Context) -> Vec<String> {
        self.context = context;
        (0..1 + self.below(4)).map(|_| self.statement()).collect()
    }

    /// One or two conditions of a context.
    pub(crate) fn conditions(&mut self, context: &'static Context) -> Vec<String> {
        self.context = context;
        (0..1 + self.below(2)).map(|_| self.condition(2)).collect()
    }

    fn statement(&mut self) -> String {
        let editor = loop {
            let editor = self.editor();
            if !is_aliased(&editor) {
                break editor;
            }
        };
        if self.one_in(3) { format!("{editor} where {}", self.condition(2)) } else { editor }
    }

    fn key(&mut self) -> String {
        format!("{:?}", self.pick(&KEYS))
    }

    /// The attributes of the context, or of one around it.
    fn map(&mut self) -> String {
        let context = self.context;
        match self.below(8) {
            0 | 1 => self.pick(context.maps_around).into(),
            2 => format!("{}[{}]", context.map, self.key()),
            3 if context.name == "log" => "log.body".into(),
            4 => format!("{}.cache", context.name),
            _ => context.map.into(),
        }
    }

    fn attribute(&mut self) -> String {
        format!("{}[{}]", self.context.map, self.key())
    }

    fn target(&mut self) -> String {
        let context = self.context;
        let attribute = self.attribute();
        match self.below(18) {
            0 if context.name == "log" => "log.body".into(),
            1 if context.name == "log" => format!("log.body[{}]", self.key()),
            2 | 3 => format!("{}[{}]", self.pick(context.maps_around), self.key()),
            4 => format!("{}.cache[{}]", context.name, self.key()),
            5 => format!("{attribute}[{}]", self.key()),
            6 => format!("{attribute}[{}]", self.below(3)),
            7 => format!("{attribute}[{}][{}]", self.key(), self.below(2)),
            8 => format!("{}[{attribute}]", context.map),
            9..12 => self.pick(context.fields).into(),
            _ => attribute,
        }
    }

    fn editor(&mut self) -> String {
        let (map, target) = (self.map(), self.target());
        match self.below(26) {
            0..7 => format!("set({target}, {})", self.expression(2)),
            7 => format!("set({map}, {})", self.expression(2)),
            8 => format!("clear({target})"),
            9 => format!("append({target}, {})", self.scalar()),
            10 => format!("append({target}, values=[{}, {}])", self.scalar(), self.scalar()),
            11 => format!("delete_index({target}, {})", self.below(3)),
            12 => format!("delete_index({target}, {}, {})", self.below(2), self.below(4)),
            13 => format!("delete_key({map}, {})", self.key()),
            14 => {
                let editor = self.pick(&["delete_matching_keys", "keep_matching_keys"]);
                format!("{editor}({map}, \"{}\")", self.pick(&PATTERNS))
            }
            15 => format!("keep_keys({map}, [{}, {}, {}])", self.key(), self.key(), self.key()),
            16 => format!("flatten({map})"),
            17 => {
                let resolve = self.one_in(2);
                format!("flatten({map}, \"p\", {}, {resolve})", 1 + self.below(3))
            }
            18 => {
                let strategy = self.pick(&["insert", "update", "upsert"]);
                format!("merge_maps({map}, {}, \"{strategy}\")", self.map_expression())
            }
            19 | 20 => {
                let wrapping = self.wrapping();
                format!(
                    "replace_pattern({target}, \"{}\", \"{}\"{wrapping})",
                    self.pick(&PATTERNS),
                    self.pick(&REPLACEMENTS)
                )
            }
            21 => format!("replace_match({target}, \"{}\", {})", self.pick(&GLOBS), self.text(1)),
            22 => {
                let mode = self.pick(&["key", "value"]);
                let (pattern, replacement) = (self.pick(&PATTERNS), self.pick(&REPLACEMENTS));
                format!("replace_all_patterns({map}, \"{mode}\", \"{pattern}\", \"{replacement}\")")
            }
            23 => format!("replace_all_matches({map}, \"{}\", \"M\")", self.pick(&GLOBS)),
            24 => format!("stringify_all({map})"),
            _ => format!("truncate_all({map}, {})", self.below(8)),
        }
    }

    fn wrapping(&mut self) -> &'static str {
        ["", "", "", ", SHA1", ", ToUpperCase, \"[%s]\""][self.below(5)]
    }

    fn text(&mut self, depth: usize) -> String {
        match self.below(6) {
            0 if depth > 0 => format!("ToUpperCase({})", self.text(depth - 1)),
            1 if depth > 0 => {
                format!("Concat([{}, {}], \"-\")", self.expression(depth - 1), self.text(depth - 1))
            }
            2 if depth > 0 => format!("Substring({}, 0, {})", self.text(depth - 1), self.below(3)),
            3 => self.attribute(),
            _ => format!("{:?}", self.pick(&TEXTS)),
        }
    }

    fn scalar(&mut self) -> String {
        match self.below(8) {
            0 => "nil".into(),
            1 => "true".into(),
            2 => self.pick(&["0", "1", "-42", "9007199254740993"]).into(),
            3 => self.pick(&["0.0", "1.5", "-2.25"]).into(),
            4 => "0x01ff".into(),
            _ => format!("{:?}", self.pick(&TEXTS)),
        }
    }

    fn map_expression(&mut self) -> String {
        match self.below(4) {
            0 => format!("{{{}: {}, {}: {}}}", "\"x\"", self.scalar(), "\"a\"", self.expression(1)),
            1 => "ParseJSON(\"{\\\"a\\\": [1, {\\\"b\\\": null}], \\\"z\\\": true}\")".into(),
            _ => self.attribute(),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return if self.one_in(2) { self.scalar() } else { self.attribute() };
        }
        let inner = depth - 1;
        match self.below(34) {
            0..4 => self.scalar(),
            4..8 => self.target(),
            8 => self.map(),
            9 => format!("[{}, {}]", self.expression(inner), self.scalar()),
            10 => self.map_expression(),
            11 => format!("{} + {}", self.number(inner), self.number(inner)),
            12 => format!("({} - {}) * {}", self.number(inner), self.number(inner), self.number(0)),
            13 => format!("{} / {}", self.number(inner), self.number(0)),
            14 => format!("-{}", self.number(0)),
            15 => format!("Len({})", self.expression(inner)),
            16 => format!("Int({})", self.expression(inner)),
            17 => format!("Double({})", self.expression(inner)),
            18 => format!("String({})", self.expression(inner)),
            19 => format!("Split({}, \",\")", self.text(inner)),
            20 => format!("Split({}, \",\")[{}]", self.text(inner), self.below(3)),
            21 => format!("Keys({{\"x\": {}}})", self.scalar()),
            22 => format!("Coalesce([{}, {}])", self.attribute(), self.scalar()),
            23 => format!("Bool({})", self.expression(inner)),
            // Go prints maps and lists as addresses.
            24 => {
                let first = self.pick(&["0", "-3", "0.5", "true"]);
                format!("Format(\"%v/%s\", [{first}, String({})])", self.text(inner))
            }
            25 => {
                self.pick(&["log.time", "log.trace_id", "log.trace_id.string", "log.span_id.string"]).into()
            }
            26 => self
                .pick(&["log.severity_number", "log.time_unix_nano", "log.flags", "log.body.string"])
                .into(),
            27 => format!("ParseJSON({})", self.text(inner)),
            28 => format!("Values({{\"x\": {}}})", self.expression(inner)),
            _ => self.text(inner),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        match self.below(4) {
            0 => self.pick(&["0", "2", "-3", "0.5"]).into(),
            1 if depth > 0 => format!("({} + {})", self.number(0), self.number(0)),
            2 => self.pick(self.context.fields).into(),
            _ => self.attribute(),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let operator = self.pick(&["==", "!=", "<", "<=", ">", ">="]);
        match self.below(10) {
            0 if depth > 0 => format!("({} and {})", self.condition(depth - 1), self.condition(depth - 1)),
            1 if depth > 0 => format!("({} or {})", self.condition(depth - 1), self.condition(depth - 1)),
            2 if depth > 0 => format!("not ({})", self.condition(depth - 1)),
            3 => format!("IsMatch({}, \"{}\")", self.target(), self.pick(&PATTERNS)),
            4 => format!(
                "{}({})",
                self.pick(&["IsString", "IsMap", "IsInt", "IsList", "IsBool", "IsDouble"]),
                self.target()
            ),
            5 => format!("{} {operator} nil", self.target()),
            6 => format!("{} {operator} {}", self.target(), self.expression(1)),
            _ => format!("{} {operator} {}", self.target(), self.scalar()),
        }
    }
}

/// Whether an editor reads a map that it changes a part of, or the other way round: in Go the value may change while it is stored.
fn is_aliased(editor: &str) -> bool {
    let (name, arguments) = editor.split_once('(').unwrap_or_default();
    let Some((target, rest)) = arguments.split_once(", ") else { return false };
    // The paths around the target end before each of its keys.
    let around = target.match_indices('[').map(|(at, _)| &target[..at]);
    around.chain((name == "merge_maps").then_some(target)).any(|path| {
        rest.match_indices(path)
            .any(|(at, _)| name == "merge_maps" || !rest[at + path.len()..].starts_with('['))
    })
}
