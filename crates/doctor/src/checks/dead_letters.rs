//! Items that peers rejected for good, by sink and reason.

use super::clocks::shown;
use crate::examination::{READ_LIMIT, seconds_between};
use crate::finding::Finding;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use tidegate_journal::dead_letters::read;

/// The most different reasons that are counted; further ones count as others.
const MOST_REASONS: usize = 1000;
/// The most reasons that are told.
const TOLD: usize = 5;
/// Older ones are a note: that something is wrong now, they do not say.
const LATELY: Duration = Duration::from_secs(86_400);
/// The longest text of a reason, in characters.
const LONGEST: usize = 200;

/// The letters of one sink.
#[derive(Default)]
struct Counted {
    letters: u64,
    items: u64,
    /// Each reason with its letters.
    reasons: BTreeMap<String, u64>,
    /// When the newest was rejected, in nanoseconds since 1970.
    newest_ns: u64,
}

pub(crate) fn check(folder: &Path, now: SystemTime) -> Vec<Finding> {
    let letters = match read(folder, false) {
        Ok(letters) => letters,
        Err(error) => {
            return vec![
                Finding::note("the dead letters cannot be read", format!("{}: {error}", folder.display()))
                    .remedy("run the doctor as the gateway's user, or as root"),
            ];
        }
    };
    let begun = Instant::now();
    let mut sinks: BTreeMap<String, Counted> = BTreeMap::new();
    let mut is_cut = false;
    for letter in letters {
        if begun.elapsed() > READ_LIMIT {
            is_cut = true;
            break;
        }
        let counted = sinks.entry(letter.sink).or_default();
        counted.letters += 1;
        counted.items += u64::from(letter.meta.items);
        counted.newest_ns = counted.newest_ns.max(letter.at_ns);
        let (reason, reasons) = (alike(&letter.reason), &mut counted.reasons);
        let is_known = reasons.contains_key(&reason) || reasons.len() < MOST_REASONS;
        *reasons.entry(if is_known { reason } else { "other reasons".to_owned() }).or_default() += 1;
    }
    let mut findings: Vec<Finding> =
        sinks.into_iter().map(|(sink, counted)| told(&sink, counted, (folder, now), is_cut)).collect();
    if findings.is_empty() {
        findings
            .push(Finding::fine("no peer has rejected anything that is kept", folder.display().to_string()));
    }
    findings
}

fn told(sink: &str, counted: Counted, (folder, now): (&Path, SystemTime), is_cut: bool) -> Finding {
    let Counted { letters, items, reasons, newest_ns } = counted;
    let newest = SystemTime::UNIX_EPOCH + Duration::from_nanos(newest_ns);
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let lines = reasons.iter().take(TOLD).map(|(reason, count)| format!("{count} × {reason}"));
    let more = reasons.len().saturating_sub(TOLD);
    let rest = (more > 0).then(|| format!("and {more} more reasons"));
    let at_least = if is_cut { "at least " } else { "" };
    let what = format!(
        "the peer of `sinks.{sink}` has rejected {at_least}{items} items for good, in {letters} requests"
    );
    let last = if is_cut { "the last that was read" } else { "the last" };
    let evidence = format!("the dead letters in {}, {last} of {}", folder.display(), shown(newest));
    // The newest ones are read last.
    let is_old = !is_cut && seconds_between(newest, now) > LATELY.as_secs_f64();
    let finding = if is_old { Finding::note(what, evidence) } else { Finding::at_risk(what, evidence) };
    finding.quoting(lines.chain(rest).collect::<Vec<_>>().join("\n"))
    .remedy("`tidegate journal dead-letters` lists them; when the cause is mended, `tidegate replay dead-letters` sends them again, each to its sink alone")
}

/// A reason without its numbers, so that those that differ in nothing else count together.
fn alike(reason: &str) -> String {
    let mut text = String::new();
    for c in reason.chars() {
        match c {
            c if c.is_ascii_digit() => {
                if !text.ends_with('#') {
                    text.push('#');
                }
            }
            c => text.push(c),
        }
        if text.chars().count() >= LONGEST {
            text.push('…');
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use tidegate_journal::dead_letters::{DEFAULT_MAX, DeadLetter, DeadLetters};
    use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};

    #[test]
    fn the_commonest_reason_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(check(&dir.path().join("none"), SystemTime::now())[0].severity, Severity::Fine);
        let letters = DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap();
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Metrics,
            protocol: Protocol::RemoteWrite1,
            encoding: Encoding::Snappy,
            items: 7,
            raw_len: 1,
            received_at_ns: 1,
        };
        for reason in ["too old: 17 s", "no such tenant", "too old: 18 s"] {
            letters.add(DeadLetter { sink: "up", reason, meta: &meta, body: b"telemetry" }).unwrap();
        }
        let found = check(dir.path(), SystemTime::now());
        assert_eq!((found.len(), found[0].severity), (1, Severity::AtRisk));
        assert!(found[0].what.contains("21 items") && found[0].what.contains("3 requests"), "{found:?}");
        assert_eq!(found[0].quote, "2 × too old: # s\n1 × no such tenant");
        let later = SystemTime::now() + 2 * LATELY;
        assert_eq!(check(dir.path(), later)[0].severity, Severity::Note, "that is long ago");
    }
}
