//! The loop: answers, keys and signals come in, a screen goes out.

use crate::app::{App, Request};
use crate::fetcher;
use crate::frame::Frame;
use crate::screens;
use crate::terminal::{TakenTerminal, give_back};
use crate::theme::Theme;
use crossterm::event::{self, Event as Input};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Events that may wait for the screen.
const WAITING: usize = 64;
/// Without events the screen is drawn this often: it shows how long ago something was.
const CLOCK: Duration = Duration::from_secs(1);

/// Something that changes the screen.
pub(crate) enum Event {
    /// An answer of the gateway, or why there is none.
    Answer(Result<Box<Frame>, String>),
    /// A key, or another size.
    Input(Input),
    /// The terminal cannot be read any more.
    InputEnded,
    /// A signal.
    Signal(i32),
    /// A thread of this program failed.
    Panicked,
}

/// What ended the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// A key, or the end of the terminal.
    ByUser,
    /// A signal, whose default is still to come.
    BySignal(i32),
}

/// Shows the gateway at `address` until the user or a signal ends it. `first` is its first answer; `fetch` asks for the
/// next, or says why there is none.
///
/// # Errors
/// When the terminal cannot be used. It is as it was before then, as after every other end.
pub fn run(
    address: String,
    first: Frame,
    fetch: impl FnMut() -> Result<Frame, String> + Send + 'static,
    theme: Theme,
) -> io::Result<Ended> {
    let (to, events) = sync_channel(WAITING);
    // Signals first: none may end the process while the terminal is taken.
    listen_to_signals(to.clone())?;
    let mut terminal = TakenTerminal::new()?;
    start("answers", to.clone(), move |to| fetcher::ask(fetch, to))?;
    start("input", to, read_input)?;
    let mut app = App::new(address, theme);
    app.answered(first, Instant::now());
    let ended = follow(&mut app, &events, &mut terminal);
    drop(terminal);
    ended
}

/// Draws, and waits for what changes the screen.
fn follow(app: &mut App, events: &Receiver<Event>, terminal: &mut TakenTerminal) -> io::Result<Ended> {
    let mut is_changed = true;
    loop {
        if is_changed {
            let now = Instant::now();
            terminal.0.draw(|frame| {
                let area = frame.area();
                screens::draw(app, now, area, frame.buffer_mut());
            })?;
        }
        is_changed = match events.recv_timeout(CLOCK) {
            Ok(Event::Answer(Ok(frame))) => {
                app.answered(*frame, Instant::now());
                true
            }
            Ok(Event::Answer(Err(reason))) => {
                app.missed(reason, Instant::now());
                true
            }
            Ok(Event::Input(Input::Key(key))) => match app.key(key) {
                Request::Draw => true,
                Request::Nothing => false,
                Request::Quit => return Ok(Ended::ByUser),
                Request::Suspend => {
                    suspend(terminal)?;
                    true
                }
            },
            Ok(Event::Input(Input::Resize(..))) | Err(RecvTimeoutError::Timeout) => true,
            Ok(Event::Input(_)) => false,
            // Somebody stopped the process and let it go on: the shell has had the terminal meanwhile.
            Ok(Event::Signal(SIGCONT)) => {
                terminal.retake()?;
                true
            }
            Ok(Event::Signal(SIGTSTP)) => {
                suspend(terminal)?;
                true
            }
            Ok(Event::Signal(signal)) => return Ok(Ended::BySignal(signal)),
            Ok(Event::InputEnded) => return Ok(Ended::ByUser),
            Ok(Event::Panicked) | Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("a part of the program failed; the message above says where"));
            }
        };
    }
}

/// Gives the terminal back and stops, until somebody lets the process go on.
fn suspend(terminal: &mut TakenTerminal) -> io::Result<()> {
    give_back();
    signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
    terminal.retake()
}

/// Starts a thread that sends events. Should it panic, the loop ends.
fn start(
    name: &str,
    to: SyncSender<Event>,
    run: impl FnOnce(&SyncSender<Event>) + Send + 'static,
) -> io::Result<()> {
    let run = move || {
        let guard = PanicGuard(to);
        run(&guard.0);
    };
    // Nobody waits for it: it may be waiting for the gateway or a key when the process ends.
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

struct PanicGuard(SyncSender<Event>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            // The loop may have ended before.
            let _ended = self.0.send(Event::Panicked);
        }
    }
}

fn read_input(to: &SyncSender<Event>) {
    while let Ok(input) = event::read() {
        if to.send(Event::Input(input)).is_err() {
            return;
        }
    }
    let _ended = to.send(Event::InputEnded);
}

fn listen_to_signals(to: SyncSender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT])?;
    start("signals", to, move |to| {
        for signal in signals.forever() {
            if to.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    })
}

/// For a terminal that cannot move its cursor: the text of [`once`](crate::once) again every second, until a signal.
///
/// # Errors
/// When the terminal cannot be written.
pub fn run_dumb(
    address: &str,
    first: Frame,
    fetch: impl FnMut() -> Result<Frame, String> + Send + 'static,
) -> io::Result<()> {
    let (to, events) = sync_channel(WAITING);
    to.send(Event::Answer(Ok(Box::new(first)))).unwrap_or_default();
    start("answers", to, move |to| fetcher::ask(fetch, to))?;
    let mut out = io::stdout().lock();
    for event in events {
        match event {
            Event::Answer(Ok(frame)) => writeln!(out, "{}", crate::once(&frame, address, Theme::PLAIN))?,
            Event::Answer(Err(reason)) => {
                let words = format!("NO ANSWER: {reason}; asking again every second");
                writeln!(out, "{}\n", Theme::PLAIN.clean(&words))?;
            }
            Event::Panicked => return Err(io::Error::other("a part of the program failed")),
            Event::Input(_) | Event::InputEnded | Event::Signal(_) => {}
        }
        out.flush()?;
    }
    Ok(())
}
