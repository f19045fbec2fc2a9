//! Random rules and series, of few names and values, so that they meet.

use super::*;

/// Numbers that are the same in each run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const NAMES: [&str; 12] =
    ["__name__", "a", "b", "ab", "instance", "job", "pod.name", "größe", "__tmp_x", "a_b", "A", "le"];
const VALUES: [&str; 14] = [
    "up",
    "foo",
    "foobar",
    "node-1:9100",
    "node-2:9100",
    "a",
    "b",
    "1",
    "go_gc_total",
    "Straße",
    "x;y",
    "line\nbreak",
    "ÄÖ",
    "a.b",
];
const REGEXES: [&str; 34] = [
    "(.*)",
    ".*",
    ".+",
    "",
    "foo",
    "foo|up|go_gc_total",
    "foo.*",
    ".*bar",
    ".*oo.*",
    "(f)(o+).*",
    "([^:]+):(\\d+)",
    "([^:]+)(?::\\d+)?",
    "go_.*|up",
    "(?i)STRASSE|up",
    "(?i)straße",
    "a|b|ab|A|le|job|x",
    "__tmp_(.*)",
    "(a)(_b)?",
    "[ab]+",
    "\\w+",
    "(?P<host>[^:]+):(?P<port>.+)",
    "a)|(b",
    ".",
    "..+",
    "x;y",
    ".*;.*",
    "(.+);(.+)",
    "line.break",
    "foo.+|.+oo|a",
    "[[:alpha:]]+",
    "node-(1|2).*",
    "(foo|foob).*r",
    "a?b?",
    "(.*)o(.*)",
];
const TEMPLATES: [&str; 14] = [
    "$1",
    "$2",
    "${1}x",
    "$1-$2",
    "fixed",
    "${host}",
    "$host:$port",
    "$$1",
    "$",
    "a$1b",
    "$0",
    "${2}_$1",
    "a",
    "b",
];

/// A rule that may be one that is refused.
pub(super) fn rule(random: &mut Random) -> RuleDefinition {
    let actions = [
        "replace",
        "replace",
        "replace",
        "replace",
        "keep",
        "drop",
        "keepequal",
        "dropequal",
        "hashmod",
        "labelmap",
        "labeldrop",
        "labelkeep",
        "lowercase",
        "uppercase",
    ];
    let action = random.of(&actions);
    let mut rule = RuleDefinition { action: Some(action.into()), ..RuleDefinition::default() };
    let wild = random.chance(3);
    let names = matches!(action, "labeldrop" | "labelkeep" | "labelmap");
    if !names || wild {
        rule.source_labels = (0..random.below(3)).map(|_| random.of(&NAMES).to_string()).collect();
        if !matches!(action, "keep" | "drop") {
            let template = action == "replace" && random.chance(30);
            rule.target_label = Some(random.of(if template { &TEMPLATES } else { &NAMES }).into());
        }
    }
    if !matches!(action, "keepequal" | "dropequal" | "hashmod" | "lowercase" | "uppercase")
        && !random.chance(15)
        || wild
    {
        rule.regex = vec![random.of(&REGEXES).into()];
    }
    if matches!(action, "replace" | "labelmap") && random.chance(70) || wild {
        rule.replacement = Some(if random.chance(5) { "" } else { random.of(&TEMPLATES) }.into());
    }
    if random.chance(10) && matches!(action, "replace" | "keep" | "drop") || wild {
        rule.separator = Some(random.of(&["", "-", ";", "::"]).into());
    }
    if action == "hashmod" {
        rule.modulus = Some(random.below(9) as u64);
    }
    rule
}

/// Another value, for some of the labels.
pub(super) fn change(random: &mut Random, labels: &mut [(String, String)]) {
    for (_, value) in labels {
        if random.chance(25) {
            *value = random.of(&VALUES).into();
        }
    }
}

/// Labels, sorted by name.
pub(super) fn labels(random: &mut Random) -> Vec<(String, String)> {
    let mut labels: Vec<(String, String)> = Vec::new();
    for name in NAMES {
        if random.chance(if name == "__name__" { 95 } else { 45 }) {
            labels.push((name.into(), random.of(&VALUES).into()));
        }
    }
    labels.sort();
    labels
}
