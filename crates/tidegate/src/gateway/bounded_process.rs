//! Runs what nobody can tell the costs of beforehand, each in a process of its own: trials of pipelines, searches.
//!
//! The process has bounds of its own, on memory, processor time and wall time, and the kernel keeps them. Its
//! memory is charged while it runs, so the gateway and the process together stay within `memory`. It has no environment, no
//! open files and no sockets of the gateway.

use super::workers::THREAD_STACK;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tidegate_arena::{Arena, Charge, Share};
use tidegate_console::{ProcessError, ProcessInput, ProcessOutput};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

pub(super) const MIB: u64 = 1 << 20;
/// How long a process whose output has ended may take to end itself.
const END_TIME: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// How often it is looked whether there is memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(20);
/// The allocator's options: no threads, whose stacks would count, and no address space set aside.
const ALLOCATOR: (&str, &str) =
    ("_RJEM_MALLOC_CONF", "background_thread:false,narenas:1,retain:false,tcache:false");

/// A command of this program, which takes the option `--memory` and keeps to it.
pub(super) struct BoundedCommand {
    /// Its arguments, without that option.
    pub(super) arguments: &'static [&'static str],
    /// Memory budgets, in bytes, each with what it must leave to requests: the first of these that does.
    pub(super) sizes: &'static [(u64, u64)],
    /// How long to wait for the least of them.
    pub(super) wait: Duration,
    /// How long it may take from its start to its end.
    pub(super) wall_time: Duration,
}

impl BoundedCommand {
    /// The memory without which it never runs: the least of its budgets, with what that must leave to requests.
    pub(super) fn least(&self) -> u64 {
        self.sizes.iter().map(|(size, left)| size + left).min().unwrap_or(0)
    }
}

/// Runs a command with `input` on its standard input.
///
/// # Errors
/// [`ProcessError`].
pub(super) async fn run(
    arena: &Arena,
    command: &BoundedCommand,
    input: Vec<ProcessInput>,
    output: &mut ProcessOutput<'_>,
) -> Result<(), ProcessError> {
    let (paid, bytes) = wait_for_memory(arena, command).await.ok_or(ProcessError::Memory)?;
    let (mut process, stream) =
        start(command, paid, bytes).map_err(|error| ProcessError::Start(error.to_string()))?;
    let exchange = async {
        exchange(stream, input, output).await.map_err(|_| ProcessError::Ended(bytes))?;
        let ended = process.end().await;
        if ended.is_some_and(|status| status.success()) { Ok(()) } else { Err(ProcessError::Ended(bytes)) }
    };
    tokio::time::timeout(command.wall_time, exchange).await.unwrap_or(Err(ProcessError::Late))
}

/// Memory for a process, as soon as there is some. It does not stand in the queue for it, in which requests would wait behind it.
async fn wait_for_memory(arena: &Arena, command: &BoundedCommand) -> Option<(Charge, u64)> {
    let mut left = command.wait;
    loop {
        if let Some(charged) = charge(arena, command.sizes) {
            return Some(charged);
        }
        left = left.checked_sub(MEMORY_INTERVAL)?;
        tokio::time::sleep(MEMORY_INTERVAL).await;
    }
}

/// Memory for a process, of what requests could still have, so that it does not push back the data.
fn charge(arena: &Arena, sizes: &[(u64, u64)]) -> Option<(Charge, u64)> {
    let free = arena.free(Share::Ingest);
    let mut sizes = sizes.iter().filter(|(size, left)| free >= size + left).map(|(size, _)| *size);
    sizes.find_map(|size| Some((arena.try_charge(Share::Ingest, size).ok()?, size)))
}

fn start(command: &BoundedCommand, paid: Charge, memory: u64) -> io::Result<(Process, UnixStream)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let stream = UnixStream::from_std(ours)?;
    let input = OwnedFd::from(theirs.try_clone()?);
    // The very program that runs, though its file may have been replaced meanwhile.
    let child = Command::new("/proc/self/exe")
        .args(command.arguments)
        .args(["--memory", &memory.to_string()])
        .env_clear()
        .env(ALLOCATOR.0, ALLOCATOR.1)
        .current_dir("/")
        .stdin(input)
        .stdout(OwnedFd::from(theirs))
        .stderr(Stdio::null())
        .spawn()?;
    Ok((Process { running: Some((child, paid)) }, stream))
}

async fn exchange(
    mut stream: UnixStream,
    input: Vec<ProcessInput>,
    output: &mut ProcessOutput<'_>,
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

/// A process with its memory. It is killed when this is dropped.
struct Process {
    /// Until it has ended.
    running: Option<(Child, Charge)>,
}

impl Process {
    /// Waits until it has ended, for a while.
    async fn end(&mut self) -> Option<ExitStatus> {
        let mut left = END_TIME;
        loop {
            let (child, _) = self.running.as_mut()?;
            match child.try_wait() {
                Ok(Some(status)) => {
                    self.running = None;
                    return Some(status);
                }
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
    /// On a busy machine a killed process may take seconds to end, and this may be a worker of the intake. So a thread waits for it, and gives the
    /// memory back then: threads that wait are bounded by that memory.
    fn drop(&mut self) {
        let Some((mut child, paid)) = self.running.take() else { return };
        let _killed = child.kill();
        let collect = move || {
            let _collected = child.wait();
            drop(paid);
        };
        let thread = std::thread::Builder::new().name("end-of-process".to_owned()).stack_size(THREAD_STACK);
        // Where there can be no thread, the process is killed all the same, and is a zombie until the gateway ends.
        let _thread = thread.spawn(collect);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_arena::Floors;

    /// The memory of a killed process is back once it has ended, and who kills it does not wait for that.
    #[test]
    fn a_killed_process_gives_its_memory_back() {
        let arena = Arena::new(32 * MIB, Floors::NONE, 1 << 16, 8, 8).unwrap();
        let paid = arena.try_charge(Share::Ingest, 16 * MIB).unwrap();
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        drop(Process { running: Some((child, paid)) });
        let begun = std::time::Instant::now();
        while arena.free(Share::Ingest) < 32 * MIB {
            assert!(begun.elapsed() < Duration::from_secs(60), "the memory is not back");
            std::thread::yield_now();
        }
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "it was collected before");
    }

    /// A process never takes the memory that requests need, and gives back what it had.
    #[test]
    fn a_process_leaves_a_third_to_requests() {
        let arena = |total: u64| Arena::new(total, Floors::NONE, 1 << 16, 8, 8).unwrap();
        for (total, expected) in
            [(200, Some(32)), (48, Some(32)), (47, Some(24)), (24, Some(16)), (18, Some(12)), (17, None)]
        {
            let arena = arena(total * MIB);
            let charged = charge(&arena, super::super::trial::SIZES);
            assert_eq!(charged.as_ref().map(|(_, size)| size / MIB), expected, "{total}");
            assert!(arena.free(Share::Ingest) >= total * MIB / 3, "{total}");
            drop(charged);
            assert_eq!(arena.free(Share::Ingest), total * MIB);
        }
    }
}
