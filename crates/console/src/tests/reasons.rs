//! The reasons in the pages are those of the books, with the same sentences.

use std::fmt::Write as _;
use tidegate_ledger::{Dropped, Refusal};

const PAGES: &str = include_str!("../../pages/src/data/reasons.ts");

/// The lines of the table `name` in the pages.
fn table(name: &str) -> &'static str {
    let begin = format!("const {name}: Readonly<Record<string, string>> = {{\n");
    let (_, rest) = PAGES.split_once(&begin).unwrap_or_else(|| panic!("no table {name}"));
    rest.split_once("};\n").unwrap().0
}

fn lines(reasons: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    reasons.fold(String::new(), |mut all, (name, meaning)| {
        let _ = writeln!(all, "  {name}: {meaning:?},");
        all
    })
}

#[test]
fn the_pages_have_the_reasons_of_the_books() {
    let refused = Refusal::ALL.iter().map(|reason| (reason.name(), reason.description()));
    assert_eq!(table("REFUSED"), lines(refused));
    let dropped = Dropped::ALL.iter().map(|reason| (reason.name(), reason.description()));
    assert_eq!(table("DROPPED"), lines(dropped));
}
