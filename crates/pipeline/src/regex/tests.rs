//! Patterns mean what they mean in Go; the tables were checked with Go's `regexp`.

use super::*;

fn compile(pattern: &str) -> (Regex, Caches) {
    let mut regexes = Regexes::default();
    let regex = regexes.compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    (regex, regexes.caches())
}

fn found(pattern: &str, haystack: &str) -> Option<Range<usize>> {
    let (regex, mut caches) = compile(pattern);
    let found = regex.find_at(&mut caches, haystack.as_bytes(), 0);
    assert_eq!(regex.is_match(&mut caches, haystack.as_bytes()), found.is_some(), "{pattern} in {haystack}");
    found
}

/// Patterns that Go and Rust's crate read differently are read as Go reads them.
#[test]
fn reads_the_syntax_of_go() {
    let cases = [
        (r"\d+", "٣4", Some(2..3)),
        (r"\w+", "é_a1", Some(2..5)),
        (r"\s", "\u{b}\t", Some(1..2)),
        (r"[[:space:]]", "\u{b}", Some(0..1)),
        (r"\bb", "éb", Some(2..3)),
        (r"[a&&b]+", "x&b", Some(1..3)),
        (r"[[]", "[", Some(0..1)),
        (r"[a[b]", "[", Some(0..1)),
        (r"[a~~b]+", "-~~b", Some(1..4)),
        (r"[]a]+", "a]", Some(0..2)),
        (r"[^]]", "]a", Some(1..2)),
        (r"[^a]", "\n", Some(0..1)),
        ("a{,5}", "a{,5}", Some(0..5)),
        ("a{", "a{", Some(0..2)),
        ("a{01}", "a{01}", Some(0..5)),
        ("a{2}", "aaa", Some(0..2)),
        ("a{2,}?", "aaa", Some(0..2)),
        (r"\Qa.b*\E*", "a.b**", Some(0..5)),
        (r"\Qab", "xab", Some(1..3)),
        (r"\101\x42\x{43}\07", "ABC\u{7}", Some(0..4)),
        (r"(?P<a>x)(?<b>y)", "xy", Some(0..2)),
        (r"(?i)straße|k", "\u{212a}", Some(0..3)),
        (r"(?i:a)b", "Ab", Some(0..2)),
        (r"a(?i)b|c", "C", Some(0..1)),
        (r"(?s).", "\n", Some(0..1)),
        (r".", "\n", None),
        (r"a$", "a\n", None),
        (r"(?m)a$", "a\n", Some(0..1)),
        (r"(?U)a+", "aa", Some(0..1)),
        (r"(?U)a+?", "aa", Some(0..2)),
        (r"(?-s:.)", "x", Some(0..1)),
        (r"\pN\p{Greek}\P{L}\p{^L}", "1α--", Some(0..5)),
        (r"\-\_\ ", "-_ ", Some(0..3)),
        (r"\a\f\t\n\r\v", "\u{7}\u{c}\t\n\r\u{b}", Some(0..6)),
        (r"a||b", "b", Some(0..0)),
        (r"()", "", Some(0..0)),
        (r"^*a", "a", Some(0..1)),
        (r"x*", "aé", Some(0..0)),
        ("(a|ab)(c|bcd)", "abcd", Some(0..4)),
    ];
    for (pattern, haystack, expected) in cases {
        assert_eq!(found(pattern, haystack), expected, "{pattern} in {haystack:?}");
    }
}

/// Patterns that Go refuses are refused, and the error is at the right place.
#[test]
fn refuses_what_go_refuses() {
    let cases = [
        ("a**", 1..3),
        ("a*+", 1..3),
        ("ab{2}*", 2..6),
        ("*a", 0..1),
        ("(*)", 1..2),
        ("a|*", 2..3),
        ("(a", 0..1),
        ("x(a|b", 1..2),
        ("a)", 1..2),
        ("[a", 0..2),
        ("[z-a]", 1..4),
        (r"\", 0..1),
        (r"\8", 0..2),
        (r"\1", 0..2),
        (r"\C", 0..2),
        (r"\Z", 0..2),
        (r"\y", 0..2),
        (r"\é", 0..3),
        (r"\xg", 0..2),
        (r"\x{110000}", 0..2),
        (r"\p{Alphabetic}", 0..14),
        (r"\pq", 0..3),
        ("[[:what:]]", 1..9),
        ("x{1001}", 1..7),
        ("x{2,1}", 1..6),
        ("(x{100}){100}", 8..13),
        ("(?P<git.sha>a)", 0..12),
        ("(?P<a", 0..1),
        ("(?=a)", 0..3),
        ("(?<=a)", 0..1),
        ("(?x)a", 0..3),
        ("(?i", 0..3),
    ];
    for (pattern, range) in cases {
        let error = Regexes::default().compile(pattern).map(|_| ()).expect_err(pattern);
        assert_eq!(error.range, range, "{pattern}: {error}");
        assert!(pattern.get(error.range).is_some(), "{pattern}");
    }
}

/// `Mode::Whole` matches as Prometheus' `^(?s:…)$` does, down to patterns that close its parenthesis.
#[test]
fn matches_whole_values_as_prometheus_does() {
    let mut regexes = Regexes::default();
    let cases = [
        ("a.b", "a\nb", true),
        ("a", "ab", false),
        ("a|b", "b", true),
        ("a)|(b", "xb", true),
        ("", "", true),
    ];
    for (pattern, value, expected) in cases {
        let regex = regexes.compile_as(pattern, Mode::Whole).unwrap();
        assert_eq!(regex.is_match(&mut regexes.caches(), value.as_bytes()), expected, "{pattern} {value:?}");
    }
    assert_eq!(regexes.compile_as("a**", Mode::Whole).unwrap_err().range, 1..3);
    assert_eq!(regexes.compile_as("(a", Mode::Whole).unwrap_err().range, 0..0);
}

/// Groups are numbered and named as in Go; those beyond the most that are captured only group.
#[test]
fn captures_groups() {
    let (regex, mut caches) = compile("(?P<a>x)?(y)(?P<a>z)");
    let mut captures = Captures::new();
    assert!(regex.captures_at(&mut caches, b"-yz", 0, &mut captures));
    let groups: Vec<_> = (0..5).map(|group| captures.range(group)).collect();
    assert_eq!(groups, [Some(1..3), None, Some(1..2), Some(2..3), None]);
    assert!(!regex.captures_at(&mut caches, b"-yz", 2, &mut captures));
    assert!(!regex.captures_at(&mut caches, b"-yz", 9, &mut captures));
    let (regex, mut caches) = compile(&"(a)".repeat(40));
    assert!(regex.captures_at(&mut caches, "a".repeat(40).as_bytes(), 0, &mut captures));
    assert_eq!((regex.groups(), regex.group_names().len()), (41, MAX_GROUPS));
    assert_eq!(captures.range(MAX_GROUPS - 1), Some(30..31));
    assert!(Template::new("$35", &regex).is_err());
}

/// Templates expand as Go's `Expand` does.
#[test]
fn expands_templates() {
    let (regex, mut caches) = compile("(?P<host>[^:]+)(?::(?P<port>[0-9]+))?");
    let mut captures = Captures::new();
    let haystack = b"node-1:9100";
    assert!(regex.captures_at(&mut caches, haystack, 0, &mut captures));
    let cases = [
        ("$1", "node-1"),
        ("${1}0", "node-10"),
        ("$10", ""),
        ("$host/$port", "node-1/9100"),
        ("${host}x$$1", "node-1x$1"),
        ("$1x", ""),
        ("a$", "a$"),
        ("$-${", "$-${"),
        ("${host", "${host"),
        ("$01", ""),
        ("${}", "${}"),
        ("$0", "node-1:9100"),
        ("é$2é", "é"),
        ("", ""),
    ];
    for (template, expected) in cases {
        let compiled = Template::new(template, &regex).unwrap();
        let mut out = Vec::new();
        let written: Result<(), ()> = compiled.expand(haystack, &captures, |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        });
        assert!(written.is_ok());
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{template}");
    }
    assert_eq!(Template::new("a$$", &regex).unwrap().constant(), Some(&b"a$"[..]));
    assert_eq!(Template::new("$1", &regex).unwrap().constant(), None);
}

/// Every haystack that matches has one of the literals.
#[test]
fn knows_literals_that_a_match_needs() {
    let literals = |pattern: &str| -> Vec<String> {
        let literals = compile(pattern).0.literals().iter().map(|text| text.to_vec()).collect::<Vec<_>>();
        literals.into_iter().map(|text| String::from_utf8(text).unwrap()).collect()
    };
    assert_eq!(literals("password=.*"), ["password="]);
    assert_eq!(literals(".*(card|token)[0-9]+"), ["card", "token"]);
    assert_eq!(literals("a.*longer"), ["longer"]);
    assert_eq!(literals("(?i)password"), [] as [&str; 0]);
    assert_eq!(literals("a?"), [] as [&str; 0]);
    assert_eq!(literals("(abc)+"), ["abc"]);
}

/// A search allocates nothing, whichever engine answers it.
#[test]
fn allocates_nothing_while_searching() {
    let patterns = [
        "foo",
        "foo|bar.*",
        "([^:]+):([0-9]+)",
        r"(a*)*b|(\w+)@(\w+)\.com",
        "(?i)error|warn",
        "^(.*?),(.*?)$",
    ];
    let mut regexes = Regexes::default();
    let compiled: Vec<Regex> = patterns.iter().map(|pattern| regexes.compile(pattern).unwrap()).collect();
    let mut caches = regexes.caches();
    let mut captures = Captures::new();
    let haystack = "GET /a,b user@example.com foo:123 ERROR ".repeat(20);
    let mut search = || {
        let mut matches = 0;
        for regex in &compiled {
            matches += usize::from(regex.is_match(&mut caches, haystack.as_bytes()));
            matches += usize::from(regex.find_at(&mut caches, haystack.as_bytes(), 3).is_some());
            matches += usize::from(regex.captures_at(&mut caches, haystack.as_bytes(), 0, &mut captures));
        }
        matches
    };
    // The stack of the slowest engine grows once.
    let expected = search();
    let mut matches = 0;
    let allocations = allocation_counter::measure(|| matches = search());
    assert_eq!((allocations.count_total, matches), (0, expected));
}

/// A pattern made to be slow stays linear, and its memory is what was declared.
#[test]
fn bounds_patterns_made_to_be_slow() {
    let mut regexes = Regexes::default();
    let slow = regexes.compile(r"(a|aa|a?)*[ab]{0,60}.{40}c(\pL|x)*$").unwrap();
    let empty = allocation_counter::measure(|| drop(std::hint::black_box(regexes.caches())));
    let haystack = "ab".repeat(32 << 10);
    let held = allocation_counter::measure(|| {
        let mut caches = regexes.caches();
        assert!(!slow.is_match(&mut caches, haystack.as_bytes()));
        assert!(slow.find_at(&mut caches, haystack.as_bytes(), 7).is_none());
        drop(caches);
    });
    let most = regexes.cache_bytes() as u64;
    assert!(
        empty.bytes_max <= most && held.bytes_max <= most,
        "{} {} {most}",
        empty.bytes_max,
        held.bytes_max
    );
    assert!(regexes.compile(r"(\pL{100}){10}").is_err());
}

/// Equal patterns share one place.
#[test]
fn shares_equal_patterns() {
    let mut regexes = Regexes::default();
    let (a, b) = (regexes.compile("x+").unwrap(), regexes.compile("x+").unwrap());
    let c = regexes.compile_as("x+", Mode::Whole).unwrap();
    assert_eq!((a.cache, b.cache, c.cache), (0, 0, 1));
}
