//! Runs trials of pipelines, each in a process of its own.
//!
//! Nobody can tell beforehand what pasted steps and items cost: patterns compile to any size, JSON becomes trees, and statements
//! multiply lengths. So the process has bounds of its own, on memory, processor time and wall time, and the kernel keeps them. Its
//! memory is charged while it runs, so the gateway and the trial together stay within `memory`. It has no environment, no
//! files and no sockets of the gateway.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tidegate_arena::{Arena, Charge, Share};
use tidegate_config::{Config, Name};
use tidegate_console::{LONGEST_LISTED, ListedPipeline, MOST_LISTED, TrialError, TrialInput, TrialOutput};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

const MIB: u64 = 1 << 20;
/// Memory budgets of a trial: the first of these of which half as much is left to requests. The program itself and the
/// allocator's tables have 9 MiB of address space, which the bound counts.
const SIZES: [u64; 4] = [32 * MIB, 24 * MIB, 16 * MIB, 12 * MIB];
/// How long a trial may take from its start to its end.
const WALL_TIME: Duration = Duration::from_secs(10);
/// How long a process whose output has ended may take to end itself.
const END_TIME: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The allocator's options: no threads, whose stacks would count, and no address space set aside.
const ALLOCATOR: (&str, &str) =
    ("_RJEM_MALLOC_CONF", "background_thread:false,narenas:1,retain:false,tcache:false");

/// Runs a trial with `input` on its standard input.
///
/// # Errors
/// [`TrialError`].
pub(super) async fn run(
    arena: &Arena,
    input: Vec<TrialInput>,
    output: &mut TrialOutput<'_>,
) -> Result<(), TrialError> {
    let (_paid, bytes) = charge(arena).ok_or(TrialError::Memory)?;
    let (mut process, stream) = start(bytes).map_err(|error| TrialError::Start(error.to_string()))?;
    let exchange = async {
        exchange(stream, input, output).await.map_err(|_| TrialError::Ended(bytes))?;
        let ended = process.end().await;
        if ended.is_some_and(|status| status.success()) { Ok(()) } else { Err(TrialError::Ended(bytes)) }
    };
    tokio::time::timeout(WALL_TIME, exchange).await.unwrap_or(Err(TrialError::Late))
}

/// Memory for a trial: at most two thirds of what requests could still have, so that it does not push back the data.
fn charge(arena: &Arena) -> Option<(Charge, u64)> {
    let free = arena.free(Share::Ingest);
    let sizes = SIZES.into_iter().filter(|size| free >= size / 2 * 3);
    { sizes }.find_map(|size| Some((arena.try_charge(Share::Ingest, size).ok()?, size)))
}

fn start(memory: u64) -> io::Result<(Process, UnixStream)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let stream = UnixStream::from_std(ours)?;
    let input = OwnedFd::from(theirs.try_clone()?);
    // The very program that runs, though its file may have been replaced meanwhile.
    let child = Command::new("/proc/self/exe")
        .args(["pipeline", "trial", "--memory", &memory.to_string()])
        .env_clear()
        .env(ALLOCATOR.0, ALLOCATOR.1)
        .current_dir("/")
        .stdin(input)
        .stdout(OwnedFd::from(theirs))
        .stderr(Stdio::null())
        .spawn()?;
    Ok((Process(child), stream))
}

async fn exchange(
    mut stream: UnixStream,
    input: Vec<TrialInput>,
    output: &mut TrialOutput<'_>,
) -> io::Result<()> {
    for part in input {
        stream.write_all(part.bytes()).await?;
    }
    stream.shutdown().await?;
    let mut status = [0; 4];
    stream.read_exact(&mut status).await?;
    let mut has_room = output(&status);
    let mut piece = vec![0; 16 << 10];
    while has_room {
        match stream.read(&mut piece).await? {
            0 => break,
            read => has_room = output(piece.get(..read).unwrap_or_default()),
        }
    }
    Ok(())
}

/// A trial's process. It is gone when this is.
struct Process(Child);

impl Process {
    /// Waits until it has ended, for a while.
    async fn end(&mut self) -> Option<ExitStatus> {
        let mut left = END_TIME;
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if !left.is_zero() => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                    left = left.saturating_sub(POLL_INTERVAL);
                }
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended is only collected. A killed one ends at once.
        let _killed = self.0.kill();
        let _collected = self.0.wait();
    }
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
    use tidegate_arena::Floors;

    /// A trial never takes the memory that requests need, and gives back what it had.
    #[test]
    fn a_trial_leaves_a_third_to_requests() {
        let arena = |total: u64| Arena::new(total, Floors::NONE, 1 << 16, 8, 8).unwrap();
        for (total, expected) in
            [(200, Some(32)), (48, Some(32)), (47, Some(24)), (24, Some(16)), (18, Some(12)), (17, None)]
        {
            let arena = arena(total * MIB);
            let charged = charge(&arena);
            assert_eq!(charged.as_ref().map(|(_, size)| size / MIB), expected, "{total}");
            assert!(arena.free(Share::Ingest) >= total * MIB / 3, "{total}");
            drop(charged);
            assert_eq!(arena.free(Share::Ingest), total * MIB);
        }
    }

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
