//! Literals that a match needs.

use regex_syntax::hir::{Hir, HirKind};

/// The most alternatives: looking for more costs more than it saves.
const MOST: usize = 16;

/// Texts of which at least one is in every haystack that `hir` matches.
pub(super) fn required(hir: &Hir) -> Box<[Box<[u8]>]> {
    of(hir).unwrap_or_default().into()
}

fn of(hir: &Hir) -> Option<Vec<Box<[u8]>>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => None,
        HirKind::Literal(literal) => Some(vec![literal.0.clone()]),
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => of(&repetition.sub),
        HirKind::Repetition(_) => None,
        // The part whose shortest text is longest.
        HirKind::Concat(parts) => parts.iter().filter_map(of).max_by_key(|texts| shortest(texts)),
        HirKind::Alternation(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(of(part)?);
                if all.len() > MOST {
                    return None;
                }
            }
            Some(all)
        }
    }
}

fn shortest(texts: &[Box<[u8]>]) -> usize {
    texts.iter().map(|text| text.len()).min().unwrap_or(0)
}
