//! Logs the statements of a pipeline that failed, at a bounded rate.

use crate::meters::{FailedStatement, FailedStatements, PipelineMeters};
use std::time::Duration;
use tokio::time::Instant;

/// How often failures of statements are logged; all of them are counted.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The source or sink that a pipeline belongs to.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'a> {
    /// The source of this name.
    Source(&'a str),
    /// The sink of this name.
    Sink(&'a str),
}

/// Time and counts of the last line logged about a pipeline's failures.
#[derive(Debug)]
pub struct FailureLog {
    logged: Option<Instant>,
    /// The failures of each statement when they were logged last.
    failures: Vec<u64>,
}

impl FailureLog {
    /// Logs what fails from now on.
    #[must_use]
    pub fn new(meters: &PipelineMeters) -> FailureLog {
        FailureLog { logged: None, failures: meters.failures() }
    }

    /// Logs some of the statements that failed since the last time, by their numbers, with the reason of the first failure: their texts, and
    /// the values that they failed on, may hold secrets. At most once in ten seconds; the steps of `silent` are left out.
    pub fn log(&mut self, owner: Owner<'_>, meters: &PipelineMeters, silent: &[usize]) {
        if self.logged.is_some_and(|logged| logged.elapsed() < LOG_EVERY) {
            return;
        }
        self.logged = Some(Instant::now());
        let (source, sink) = match owner {
            Owner::Source(name) => (Some(name), None),
            Owner::Sink(name) => (None, Some(name)),
        };
        let FailedStatements { first, more } = meters.failed_since(&mut self.failures, silent);
        for FailedStatement { step, statement, failures, reason } in first {
            let Some(step) = meters.steps().get(step) else { continue };
            tracing::warn!(
                source,
                sink,
                pipeline = step.pipeline,
                step = step.step,
                statement,
                failures,
                reason = reason.map(tracing::field::display),
                "a statement of the pipeline failed on items"
            );
        }
        if more > 0 {
            tracing::warn!(source, sink, "{more} more statements of the pipeline failed on items");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StepMeters;
    use std::sync::{Arc, Mutex};
    use tidegate_pipeline::{Definition, ErrorMode, Format, Pipeline, Run, Signal, StepDefinition, StepKind};

    /// A log record whose attribute `k` is the integer 5.
    const WITH_NUMBER: &[u8] = b"\x12\x09\x32\x07\x0a\x01k\x12\x02\x18\x05";
    /// A log record without attributes.
    const BARE: &[u8] = b"\x12\x05\x2a\x03\x0a\x01x";

    fn body(records: &[&[u8]]) -> Vec<u8> {
        let records = records.concat();
        let len = records.len() as u8;
        [&[0x0a, len + 2, 0x12, len][..], &records].concat()
    }

    /// The line has the step, the statement's number, how often it failed since the last line, and why it failed first since then;
    /// nothing of its text, which may hold a secret.
    #[tokio::test(start_paused = true)]
    async fn a_line_has_the_reason_of_the_first_failure_in_its_window() {
        let statements =
            ["set(log.attributes[\"fine\"], \"hunter2\")", "set(log.severity_text, log.attributes[\"k\"])"];
        let kind = StepKind::Edit(statements.map(str::to_owned).to_vec());
        let steps = vec![StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }];
        let (pipeline, _) = Pipeline::compile(&Definition { steps }).unwrap();
        let step =
            StepMeters::new("clean".to_owned(), "2".to_owned(), statements.map(str::to_owned).to_vec());
        let meters = PipelineMeters::new(vec![step]);
        let mut log = FailureLog::new(&meters);
        let mut workspace = pipeline.workspace();
        let written = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&written);
        let subscriber = tracing_subscriber::fmt().json().with_writer(move || Lines(Arc::clone(&writer)));
        let _guard = tracing::subscriber::set_default(subscriber.finish());

        let bodies = [body(&[BARE, WITH_NUMBER, BARE]), body(&[WITH_NUMBER, BARE])];
        let reasons = ["expected a string, got nil", "expected a string, got an integer"];
        for ((body, reason), failures) in bodies.iter().zip(reasons).zip([3, 2]) {
            let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
            let format = Format::Otlp(Signal::Logs);
            let mut run = Run::new(&pipeline, 0, &mut workspace, format, body, &mut scratch, 0);
            crate::run(&mut run, &meters).await;
            workspace.take_counts(|step, counts| meters.add(step, counts));
            log.log(Owner::Sink("lake"), &meters, &[]);
            tokio::time::advance(LOG_EVERY).await;
            let line = String::from_utf8(std::mem::take(&mut *written.lock().unwrap())).unwrap();
            let has = |field: String| assert!(line.contains(&field), "{field}: {line}");
            has("\"sink\":\"lake\"".to_owned());
            has("\"step\":\"2\",\"statement\":2".to_owned());
            has(format!("\"failures\":{failures},\"reason\":\"{reason}\""));
            assert_eq!(line.lines().count(), 1, "{line}");
            assert!(!line.contains("hunter2") && !line.contains("severity_text"), "{line}");
        }
    }

    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
