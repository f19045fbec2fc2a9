//! The findings of all checks, for people and programs.

use crate::finding::{Finding, Severity};
use crate::mask::Masker;
use serde_json::{Value, json};
use std::fmt::{self, Write};

/// Columns of a text, where the terminal has as many.
const WIDTH: usize = 100;
/// The indentation of what follows a finding's first line.
const INDENT: &str = "           ";
const RESET: &str = "\u{1b}[0m";
const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";

/// All findings, worst first, without secrets.
#[derive(Debug, Clone)]
pub struct Report {
    /// The name of the check, and what it found.
    findings: Vec<(&'static str, Finding)>,
}

impl Report {
    /// The findings, with what `masker` knows masked.
    pub(crate) fn new(findings: Vec<(&'static str, Finding)>, masker: &Masker) -> Report {
        let masked = |(check, finding): (&'static str, Finding)| {
            let Finding { severity, what, evidence, remedy, quote } = finding;
            let (what, evidence) = (masker.mask(&what), masker.mask(&evidence));
            let (remedy, quote) = (masker.mask(&remedy), masker.mask(&quote));
            (check, Finding { severity, what, evidence, remedy, quote })
        };
        let mut findings: Vec<_> = findings.into_iter().map(masked).collect();
        findings.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
        Report { findings }
    }

    /// The findings, worst first, each with the name of its check.
    pub fn findings(&self) -> impl Iterator<Item = (&'static str, &Finding)> {
        self.findings.iter().map(|(check, finding)| (*check, finding))
    }

    /// The worst severity.
    pub fn worst(&self) -> Severity {
        self.findings.first().map_or(Severity::Fine, |(_, finding)| finding.severity)
    }

    /// The same without words of peers and files.
    pub(crate) fn without_quotes(&self) -> Report {
        let findings = self.findings.iter().cloned();
        let without = |(check, finding): (&'static str, Finding)| (check, finding.quoting(""));
        Report { findings: findings.map(without).collect() }
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|(_, finding)| finding.severity == severity).count()
    }

    /// Writes a block for each finding that is not fine, worst first, and a line with the rest. Nothing but colours, where
    /// they are asked for, is obeyed by a terminal.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write_text(&self, out: &mut dyn Write, has_colours: bool) -> fmt::Result {
        let paint = |code: &'static str| if has_colours { code } else { "" };
        for (check, finding) in self.findings().filter(|(_, finding)| finding.severity > Severity::Fine) {
            let word = finding.severity.to_string();
            let (colour, bold, dim, reset) =
                (paint(colour(finding.severity)), paint(BOLD), paint(DIM), paint(RESET));
            let mut lines = wrapped(&finding.what, WIDTH - INDENT.len());
            let first = if lines.is_empty() { String::new() } else { lines.remove(0) };
            writeln!(out, "{colour}{:<11}{reset}{bold}{first}{reset}", word.to_uppercase())?;
            for line in lines {
                writeln!(out, "{INDENT}{bold}{line}{reset}")?;
            }
            let parts = [("seen", &finding.evidence), ("said", &finding.quote), ("to do", &finding.remedy)];
            for (label, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
                let mut label = label;
                for line in wrapped(text, WIDTH - INDENT.len() - 7) {
                    writeln!(out, "{INDENT}{dim}{label:<7}{reset}{line}")?;
                    label = "";
                }
            }
            writeln!(out, "{INDENT}{dim}check  {check}{reset}\n")?;
        }
        self.write_counts(out, paint(BOLD), paint(RESET))
    }

    fn write_counts(&self, out: &mut dyn Write, bold: &str, reset: &str) -> fmt::Result {
        let [broken, at_risk, notes, fine] = Severity::ALL.map(|severity| self.count(severity));
        let notes_word = if notes == 1 { "note" } else { "notes" };
        write!(out, "{bold}{broken} broken, {at_risk} at risk, {notes} {notes_word}, {fine} fine{reset}")?;
        let mut names: Vec<&str> = self.findings.iter().map(|(check, _)| *check).collect();
        names.retain(|name| {
            self.findings.iter().all(|(check, finding)| check != name || finding.severity == Severity::Fine)
        });
        let mut seen = Vec::new();
        names.retain(|name| {
            !seen.contains(name) && {
                seen.push(*name);
                true
            }
        });
        if !names.is_empty() {
            write!(out, " (all well with: {})", names.join(", "))?;
        }
        writeln!(out)
    }

    /// The report as one JSON object; `for_archive` leaves out what may quote telemetry.
    pub fn json(&self, version: &str, for_archive: bool) -> Value {
        let finding = |(check, finding): (&str, &Finding)| {
            let mut value = json!({
                "check": check,
                "severity": finding.severity.name(),
                "what": finding.what,
                "evidence": finding.evidence,
                "remedy": finding.remedy,
            });
            if let Some(object) = value.as_object_mut()
                && !for_archive
                && !finding.quote.is_empty()
            {
                object.insert("quote".to_owned(), finding.quote.clone().into());
            }
            value
        };
        let counts: serde_json::Map<String, Value> = Severity::ALL
            .into_iter()
            .map(|severity| (severity.name().to_owned(), self.count(severity).into()))
            .collect();
        json!({
            "version": version,
            "state": self.worst().name(),
            "counts": counts,
            "findings": self.findings().map(finding).collect::<Vec<_>>(),
        })
    }
}

fn colour(severity: Severity) -> &'static str {
    match severity {
        Severity::Broken => "\u{1b}[1;31m",
        Severity::AtRisk => "\u{1b}[1;33m",
        Severity::Note => "\u{1b}[1;36m",
        Severity::Fine => "\u{1b}[1;32m",
    }
}

/// The lines of a text, none longer than `width` where it has blanks. What a terminal obeys is escaped.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in tidegate_plain::lines(text.trim_end()).lines() {
        // Excerpts of files are aligned by their blanks.
        if line.starts_with(' ') || line.chars().count() <= width {
            lines.push(line.to_owned());
            continue;
        }
        let mut current = String::new();
        for word in line.split(' ') {
            if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let findings = vec![
            ("memory", Finding::fine("the budget fits", "256 MiB of 1 GiB")),
            ("disk", Finding::at_risk("the disk is slow", "200 ms").remedy("use another disk")),
            ("peers", Finding::broken("`a` is down", "refused\u{1b}[2J").quoting("go away, token-1234")),
            ("disk", Finding::fine("the folder can be written", "it was")),
            ("ports", Finding::note("port 80", "-")),
        ];
        Report::new(findings, &Masker::new(["token-1234"]))
    }

    #[test]
    fn the_worst_comes_first_and_the_fine_are_counted() {
        let mut text = String::new();
        report().write_text(&mut text, false).unwrap();
        let place = |word: &str| text.find(word).unwrap();
        assert!(place("BROKEN") < place("AT RISK") && place("AT RISK") < place("NOTE"), "{text}");
        assert!(text.ends_with("1 broken, 1 at risk, 1 note, 2 fine (all well with: memory)\n"), "{text}");
        assert!(text.contains("said   go away, ***") && text.contains("to do  use another disk"), "{text}");
        assert!(!text.contains('\u{1b}'), "nothing is obeyed: {text:?}");
        assert_eq!(report().worst(), Severity::Broken);
    }

    #[test]
    fn an_archive_has_no_words_of_peers() {
        let json = report().json("1", true).to_string();
        assert!(!json.contains("go away") && json.contains("`a` is down"), "{json}");
        assert_eq!(report().json("1", false)["findings"][0]["quote"], "go away, ***");
        assert_eq!(report().json("1", false)["counts"]["fine"], 2);
    }

    #[test]
    fn long_lines_are_wrapped_and_excerpts_are_not() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("abcdefgh", 5), ["abcdefgh"]);
        assert_eq!(wrapped("  | a b c d", 5), ["  | a b c d"]);
        assert!(wrapped("", 5).is_empty());
    }
}
