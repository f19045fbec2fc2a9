//! The configuration, as the program has judged it: the settings, the memory plan, the files that it names.

use crate::finding::Finding;
use crate::subject::Configuration;

pub(crate) fn check(configuration: &Configuration) -> Vec<Finding> {
    let file = configuration.file.as_ref();
    let name = file.map_or_else(|| "the default configuration".to_owned(), |file| file.display().to_string());
    let command = file.map(|file| format!("`tidegate check {}`", file.display()));
    let errors = configuration.errors.iter().map(|error| {
        let mut lines = error.lines();
        let first = lines.next().unwrap_or_default().to_owned();
        let rest: Vec<&str> = lines.collect();
        let evidence = if rest.is_empty() { format!("in {name}") } else { rest.join("\n") };
        let again = command.as_deref().unwrap_or("`tidegate plan`");
        Finding::broken(first, evidence).remedy(format!("correct it; {again} says whether it is right"))
    });
    let notes = configuration.notes.iter().map(|note| {
        let remedy = match note.contains("holds secrets") {
            true => {
                "take the rights of others away: `chmod o=,g= FILE`, with the gateway's user as its owner"
            }
            false => "",
        };
        // Files with secrets that anybody can read are no trouble of the gateway, and trouble all the same.
        match remedy {
            "" => Finding::note(note.clone(), format!("in {name}")),
            remedy => Finding::at_risk(note.clone(), format!("in {name}")).remedy(remedy),
        }
    });
    let mut findings: Vec<Finding> = errors.chain(notes).collect();
    if configuration.errors.is_empty() {
        findings.push(Finding::fine(format!("{name} is valid and fits in its memory"), "its memory plan"));
    } else if configuration.effective.is_empty() {
        let what = "only the configuration was looked at: what it means is not known while it cannot be read";
        findings.push(Finding::note(what, "no other check was made"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    #[test]
    fn errors_are_broken_and_loose_files_at_risk() {
        let configuration = Configuration {
            file: Some("t.yaml".into()),
            errors: vec!["t.yaml:1:1: no such setting\n  1 | memry\n".into()],
            notes: vec!["`k`: /k.pem holds secrets, and everybody can read it".into(), "other".into()],
            effective: String::new(),
        };
        let found: Vec<Severity> = check(&configuration).iter().map(|finding| finding.severity).collect();
        assert_eq!(found, [Severity::Broken, Severity::AtRisk, Severity::Note, Severity::Note]);
        let fine = check(&Configuration::default());
        assert_eq!(fine.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::Fine]);
    }
}
