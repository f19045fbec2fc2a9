//! Every editor leaves the attributes that Go leaves.

use super::super::tests::{expression, render};
use crate::machine::{Machine, Spare};
use crate::memory::Memory;
use crate::ottl::field::{Context, Field};
use crate::regex::Regexes;
use crate::testing::empty_record;
use crate::value::Value;
use std::fmt::Write as _;

/// Runs `statement` on a log record with `attributes`. `full` limits the temporary space behind the attributes.
fn edited(statement: &str, attributes: &str, space: usize) -> String {
    let mut regexes = Regexes::default();
    let both = format!("[{attributes}, {statement}]");
    let (compiled, constants) = match expression::compile(&both, &mut regexes) {
        Ok(compiled) => compiled,
        Err(message) => return format!("refused {message}"),
    };
    let crate::ottl::program::Expression::List(both) = compiled else { panic!("no list") };
    let mut temporary = vec![0; space];
    let mut record = empty_record();
    let mut caches = regexes.caches();
    let mut spare = Spare::new();
    let mut machine = Machine {
        memory: Memory::new(b"", &constants, &mut temporary),
        record: &mut record,
        regexes: &mut caches,
        spare: &mut spare,
        now_ns: 0,
        traces: None,
        measurements: None,
    };
    // The space is too small for the attributes.
    let Ok(Value::Map(map)) = machine.value(&both[0]) else { return "error ".into() };
    let table = machine.record.table(&mut machine.memory, Context::Log, Field::Attributes).unwrap();
    table.load(&machine.memory, map, 1).unwrap();
    let result = machine.value(&both[1]);
    let Machine { memory, record, .. } = &mut machine;
    let table = record.table(memory, Context::Log, Field::Attributes).unwrap();
    let mut out = String::from(if result.is_ok() { "" } else { "error " });
    let mut room = vec![0; 1 << 16];
    let mut written = tidegate_wire::output::SliceOutput::new(&mut room);
    let mut outside = crate::any_value::Outside { memory, out: &mut written };
    table.write(1, &mut outside).unwrap();
    let len = written.len();
    room.truncate(len);
    let slice = crate::memory::Slice { start: 0, len: len as u32, space: crate::memory::Space::Body };
    render(&Memory::new(&room, b"", &mut []), Value::Map(slice), &mut out);
    assert_eq!(machine.spare.tables.len(), Spare::new().tables.len());
    out
}

#[test]
fn attributes_are_those_that_go_leaves() {
    assert_cases(include_str!("../cases/editors.tsv"));
}

#[test]
fn redacted_attributes_have_no_match_left() {
    assert_cases(include_str!("../cases/redact.tsv"));
}

fn assert_cases(cases: &str) {
    let mut wrong = String::new();
    for line in cases.lines().filter(|line| !line.starts_with('#')) {
        let [statement, before, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        let found = edited(statement, before, 1 << 16);
        if found != expected {
            writeln!(wrong, "{statement} on {before}\n  expected {expected}\n  found    {found}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Whatever the space, an editor fails or does what it does, and what it leaves can be read.
#[test]
fn a_full_memory_fails_the_statement() {
    for line in include_str!("../cases/editors.tsv").lines().filter(|line| !line.starts_with('#')) {
        let [statement, before, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        for space in (before.len()..before.len() + 200).step_by(7) {
            let found = edited(statement, before, space);
            assert!(found == expected || found.starts_with("error "), "{statement} in {space}: {found}");
        }
    }
}

#[test]
fn what_cannot_work_is_refused_when_it_is_compiled() {
    for (statement, message) in [
        ("append(attributes)", "`append` needs"),
        ("flatten(attributes, depth=0)", "at least 1"),
        ("limit(attributes, -1, [])", "negative"),
        ("limit(attributes, 1, [\"a\", \"b\"])", "less than the number of priority keys"),
        ("truncate_all(attributes, -1)", "negative"),
        ("truncate_all(attributes, 2, truncation_marker=\"...\")", "longer than the limit"),
        ("merge_maps(attributes, attributes, \"replace\")", "the strategies are"),
        ("replace_all_patterns(attributes, \"keys\", \"a\", \"b\")", "the mode is"),
        ("replace_pattern(attributes[\"a\"], \"(\", \"b\")", ""),
        ("replace_pattern(attributes[\"a\"], attributes[\"p\"], \"b\")", "has to be a literal"),
        ("delete_matching_keys(attributes, \"a**\")", ""),
        ("replace_match(attributes[\"a\"], \"[\", \"b\")", "without `]`"),
        ("replace_pattern(attributes[\"a\"], \"a\", \"b\", IsInt)", "no function of one string"),
    ] {
        let found = edited(statement, "{}", 1 << 12);
        let reason = found.strip_prefix("refused ").unwrap_or_else(|| panic!("{statement}: {found}"));
        assert!(reason.contains(message), "{statement}: {reason}");
    }
}

/// Meant differences: texts stay UTF-8, lists take maps, and a map that is merged into its own part does not grow with it.
#[test]
fn differences_from_go_are_these() {
    assert_eq!(edited("truncate_all(attributes, 2, false)", "{\"a\": \"aéé\"}", 1 << 12), "{\"a\": \"a\"}");
    assert_eq!(
        edited("append(attributes[\"l\"], attributes[\"m\"])", "{\"l\": [], \"m\": {\"k\": 1}}", 1 << 12),
        "{\"l\": [{\"k\": 1}], \"m\": {\"k\": 1}}"
    );
    assert_eq!(
        edited("append(attributes[\"m\"], \"x\")", "{\"m\": {\"k\": 1}}", 1 << 12),
        "{\"m\": [{\"k\": 1}, \"x\"]}"
    );
    assert_eq!(
        edited(
            "merge_maps(attributes[\"m\"], attributes, \"insert\")",
            "{\"a\": 1, \"m\": {\"x\": 2}}",
            1 << 12
        ),
        "{\"a\": 1, \"m\": {\"a\": 1, \"m\": {\"x\": 2}, \"x\": 2}}"
    );
}
