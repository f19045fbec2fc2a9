//! Symbols of 2.0 bodies that nothing refers to any more are gone.

use super::super::fields::{field, varint};
use super::bodies::{Series, run, two};
use super::*;
use crate::{Outcome, Pipeline};
use std::collections::BTreeSet;
use tidegate_wire::remote_write::{Request, Symbols, Version, view};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The texts of exemplars and metadata, by series.
pub(super) fn others(version: Version, body: &[u8]) -> Vec<Vec<String>> {
    let mut symbols = Symbols::new();
    let Request::V2(request) = view(version, body, &mut symbols).unwrap() else { return Vec::new() };
    let series = request.series().map(|series| {
        let exemplars = series.exemplars().flat_map(|exemplar| exemplar.labels);
        let exemplars = exemplars.flat_map(|label| [label.name, label.value]);
        // The view has metadata only where there is a metric name.
        let metadata = fields(series.message(), 5).flat_map(|metadata| {
            fields(metadata, 3).chain(fields(metadata, 4)).map(|number| varint(number).unwrap().0)
        });
        let metadata = metadata.map(|number| request.symbols().get(number).unwrap());
        exemplars.chain(metadata).map(text).collect()
    });
    series.collect()
}

/// The payloads of the fields with this number.
fn fields(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    let all = std::iter::from_fn(move || {
        let field = field(message, at, message.len())?;
        at = field.end;
        Some((field.number, &message[field.payload..field.end]))
    });
    all.filter(move |(own, _)| *own == number).map(|(_, payload)| payload)
}

/// The symbols that no series refers to, without empty ones.
pub(super) fn unreferenced(version: Version, body: &[u8]) -> Vec<String> {
    let mut symbols = Symbols::new();
    let request = view(version, body, &mut symbols).unwrap();
    let labels = request.series().flat_map(|series| series.labels());
    let mut used: BTreeSet<String> = labels.flat_map(|label| [label.name, label.value]).map(text).collect();
    used.extend(others(version, body).into_iter().flatten());
    let Request::V2(request) = request else { return Vec::new() };
    let table = request.symbols();
    let all = (0..table.len() as u64).filter_map(|number| table.get(number)).map(text);
    all.filter(|symbol| !symbol.is_empty() && !used.contains(symbol)).collect()
}

fn series(text: &str) -> Series {
    Series { labels: labels(text), samples: 1, exemplars: 0, scattered: false }
}

/// The output of `rules` for `body`, if they change it.
fn changed(rules: &Rules, body: &[u8]) -> Option<Vec<u8>> {
    let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
    run(rules, &mut rules.workspace(), Version::V2, body, &mut scratch).1
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Neither the value of a label that was removed nor the labels of a series that was dropped are left in the body; what another
/// series has as well stays.
#[test]
fn what_rules_remove_is_not_left_in_the_symbols() {
    let rules = compile(&[
        rule(&[("source_labels", "job"), ("regex", "secret"), ("action", "drop")]),
        rule(&[("regex", "api_key"), ("action", "labeldrop")]),
    ]);
    let body = two(&[
        series("__name__=up,api_key=hunter2,job=a"),
        series("__name__=up,api_key=hunter3,job=a"),
        series("__name__=up,customer=acme,job=secret,zone=eu"),
        series("__name__=up,job=a,zone=eu"),
        series("__name__=up,api_key=eu,job=a"),
    ]);
    let out = changed(&rules, &body).unwrap();
    for gone in ["hunter", "api_key", "acme", "customer", "secret"] {
        assert!(contains(&body, gone) && !contains(&out, gone), "{gone}");
    }
    assert!(contains(&out, "eu") && contains(&out, "zone"));
}

/// A body that came with a symbol that nothing refers to is changed by that alone, and is as it should be then.
#[test]
fn symbols_that_nothing_referred_to_are_removed() {
    let rules = compile(&[rule(&[("regex", "api_key"), ("action", "labeldrop")])]);
    let body = two(&[series("__name__=up,job=a"), series("__name__=up,job=b")]);
    let out = changed(&rules, &body).unwrap();
    assert!(contains(&body, "unused") && !contains(&out, "unused"));
    assert_eq!(out.len(), body.len() - "unused 0".len());
    assert_eq!(changed(&rules, &out), None);
}

/// A first symbol that is not empty, as it should be, is removed like another.
#[test]
fn the_first_symbol_is_removed_if_it_has_a_text() {
    let rules = compile(&[rule(&[("regex", "api_key"), ("action", "labeldrop")])]);
    let body = [&b"\x22\x07hunter2\x22\x08__name__\x22\x02up"[..], b"\x2a\x04\x0a\x02\x01\x02"].concat();
    let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
    let (outcome, _) = run(&rules, &mut rules.workspace(), Version::V2, &body, &mut scratch);
    assert_eq!(outcome, Outcome::Empty);
}

/// A table that is longer than one step of the run.
#[test]
fn a_long_table_loses_what_it_should() {
    let rules = compile(&[rule(&[("regex", "api_key"), ("action", "labeldrop")])]);
    let mut body = b"\x22\x00\x22\x08__name__\x22\x02up\x22\x07api_key\x22\x02no".to_vec();
    for at in 0..20_000 {
        body.extend_from_slice(b"\x22\x06");
        body.extend_from_slice(format!("{at:06}").as_bytes());
    }
    // The last symbol is used.
    let last = 5 + 19_999u32;
    let reference = [(last & 0x7f) as u8 | 0x80, (last >> 7 & 0x7f) as u8 | 0x80, (last >> 14) as u8];
    let mut labels = vec![1, 2, 3, 4, 1];
    labels.extend_from_slice(&reference);
    let mut series = vec![0x0a, labels.len() as u8];
    series.extend_from_slice(&labels);
    series.extend_from_slice(b"\x12\x00");
    body.extend_from_slice(&[0x2a, series.len() as u8]);
    body.extend_from_slice(&series);
    let out = changed(&rules, &body).unwrap();
    assert!(contains(&out, "019999") && !contains(&out, "019998") && !contains(&out, "api_key"));
    assert_eq!(unreferenced(Version::V2, &out), [""; 0]);
}
