//! The answer of a trial's process: a part of the page, or JSON, of a bounded length.

use super::markup::{Fragment, write_form, write_results};
use super::{TrialForm, TrialReport};

/// Answer of a trial's process, which the gateway passes on.
#[derive(Debug)]
pub struct TrialAnswer {
    bytes: Vec<u8>,
}

impl TrialAnswer {
    /// The form as it was sent, and what came of it, as a part of the page. It is at most `most` bytes long.
    #[must_use]
    pub fn page(form: &TrialForm, report: &TrialReport, pipelines: &[String], most: usize) -> TrialAnswer {
        let mut out = Fragment::new(most);
        out.push("200\n");
        write_form(form, pipelines, &mut out);
        write_results(report, &mut out);
        TrialAnswer { bytes: out.into_text().into_bytes() }
    }

    /// The report as JSON, with as many items as fit into `most` bytes.
    #[must_use]
    pub fn json(report: &TrialReport, most: usize) -> TrialAnswer {
        let mut report = report.clone();
        loop {
            let mut bytes = b"200\n".to_vec();
            let written = serde_json::to_writer(&mut bytes, &report);
            bytes.push(b'\n');
            if written.is_ok() && bytes.len() <= most {
                return TrialAnswer { bytes };
            }
            if report.items.is_empty() {
                return TrialAnswer::refused("the answer would be too long: try fewer steps", true);
            }
            let fewer = report.items.len() / 2;
            report.items_not_shown += report.items.len() - fewer;
            report.items.truncate(fewer);
            report.made.clear();
        }
    }

    /// The form could not be read; `words` say why.
    #[must_use]
    pub fn refused(words: &str, is_json: bool) -> TrialAnswer {
        if is_json {
            let error = serde_json::json!({ "error": words });
            return TrialAnswer { bytes: format!("400\n{error}\n").into_bytes() };
        }
        let mut out = Fragment::new(4 << 10);
        out.push("400\n");
        let report = TrialReport { notes: vec![words.to_owned()], ..TrialReport::default() };
        write_results(&report, &mut out);
        TrialAnswer { bytes: out.into_text().into_bytes() }
    }

    /// The status, a line end, and the content.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
