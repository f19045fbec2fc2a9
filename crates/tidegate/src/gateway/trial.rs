//! Trials of pipelines, each in a process of its own.
//!
//! Nobody can tell beforehand what pasted steps and items cost: patterns compile to any size, JSON becomes trees, and statements
//! multiply lengths.

use super::bounded_process::{self, BoundedCommand, MIB};
use std::time::Duration;
use tidegate_arena::Arena;
use tidegate_config::{Config, Name};
use tidegate_console::{
    LONGEST_LISTED, ListedPipeline, MOST_LISTED, ProcessError, ProcessInput, ProcessOutput,
};

/// The memory of a trial: half as much is left to requests. The program itself and the allocator's tables have 9 MiB of address space,
/// which the bound counts.
pub(super) const SIZES: &[(u64, u64)] =
    &[(32 * MIB, 16 * MIB), (24 * MIB, 12 * MIB), (16 * MIB, 8 * MIB), (12 * MIB, 6 * MIB)];

/// The command that tries steps.
const TRIAL: BoundedCommand = BoundedCommand {
    arguments: &["pipeline", "trial"],
    sizes: SIZES,
    wait: Duration::ZERO,
    wall_time: Duration::from_secs(10),
};

/// Runs a trial with `input` on its standard input.
///
/// # Errors
/// [`ProcessError`].
pub(super) async fn run(
    arena: &Arena,
    input: Vec<ProcessInput>,
    output: &mut ProcessOutput<'_>,
) -> Result<(), ProcessError> {
    bounded_process::run(arena, &TRIAL, input, output).await
}

/// The pipelines of `config`, for the page.
pub(super) fn listed(config: &Config) -> Vec<ListedPipeline> {
    let mut left = LONGEST_LISTED;
    let pipelines = config.pipelines.keys().take(MOST_LISTED).map(|name| {
        let steps = config.steps_as_written(name).filter(|steps| steps.len() <= left);
        left -= steps.map_or(0, str::len);
        ListedPipeline {
            name: name.to_string(),
            sources: config.sources_of(name).collect(),
            sinks: config.sinks_of(name).map(Name::to_string).collect(),
            steps: steps.map(str::to_owned),
        }
    });
    pipelines.collect()
}

/// The steps of a pipeline as they are written.
pub(super) fn steps_of(config: &Config, pipeline: &str) -> Option<String> {
    config.steps_as_written(&pipeline.parse().ok()?).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelines_are_listed_within_their_bound() {
        let step = format!("- drop: log.body == \"{}\"", "x".repeat(LONGEST_LISTED * 2 / 3));
        let text = format!(
            "pipelines:\n  a:\n    steps:\n    {step}\n  b:\n    steps:\n    {step}\n  c:\n    steps: [{{drop: 'log.body == \"${{WORD}}\"'}}]\nsinks: {{s: {{type: blackhole, pipeline: a}}}}\nsources: {{otlp: {{pipeline: c}}}}\n"
        );
        let config = tidegate_config::parse("test", &text, &|_| Some("s3cret".to_owned())).unwrap();
        let listed = listed(&config);
        let is_shown: Vec<bool> = listed.iter().map(|pipeline| pipeline.steps.is_some()).collect();
        assert_eq!((is_shown, listed[0].sinks.as_slice()), (vec![true, false, true], &["s".to_owned()][..]));
        let sources: Vec<&[&str]> = listed.iter().map(|pipeline| pipeline.sources.as_slice()).collect();
        assert_eq!(sources, [&[][..], &[], &["otlp"]]);
        assert_eq!(listed[2].steps.as_deref(), Some("[{drop: 'log.body == \"${WORD}\"'}]"));
        assert_eq!(steps_of(&config, "b").as_deref(), Some(step.as_str()));
        assert_eq!(steps_of(&config, "d"), None);
    }
}
