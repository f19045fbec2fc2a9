//! A program in a pseudo-terminal, and the screen that somebody would see.

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tidegate_tests::{SOON, binary, until, until_some};

/// A terminal with a program in it. Dropped, the program is killed.
pub(crate) struct PseudoTerminal {
    /// Our end: the screen and the keyboard.
    master: File,
    /// The other end, open for as long as the terminal is, as a shell would keep it.
    slave: File,
    emulator: Arc<Mutex<Emulator>>,
    child: Child,
    /// The terminal's settings before the program began.
    before: Termios,
}

struct Emulator {
    screen: vt100::Parser,
    /// Every byte.
    bytes: Vec<u8>,
}

impl PseudoTerminal {
    /// Runs the program with these arguments and variables on a terminal of so many columns and rows.
    pub(crate) fn run(
        args: &[&str],
        environment: &[(&str, &str)],
        (columns, rows): (u16, u16),
    ) -> PseudoTerminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = File::options().read(true).write(true).open(Path::new(&name)).unwrap();
        tcsetwinsize(&slave, size(columns, rows)).unwrap();
        let before = tcgetattr(&slave).unwrap();
        let master = File::from(master);
        let end = || Stdio::from(slave.try_clone().unwrap());
        // The terminal becomes the program's own, so that a change of size is told to it.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(binary()).args(args).stdin(end()).stdout(end()).stderr(end());
        for name in ["NO_COLOR", "LC_ALL", "LC_CTYPE"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").envs(environment.iter().copied());
        let child = command.spawn().unwrap();
        let screen = vt100::Parser::new(rows, columns, 0);
        let emulator = Arc::new(Mutex::new(Emulator { screen, bytes: Vec::new() }));
        let (mut output, shared) = (master.try_clone().unwrap(), Arc::clone(&emulator));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // It fails when the other end is closed.
            while let Ok(read @ 1..) = output.read(&mut piece) {
                let mut emulator = shared.lock().unwrap_or_else(PoisonError::into_inner);
                emulator.screen.process(&piece[..read]);
                emulator.bytes.extend_from_slice(&piece[..read]);
            }
        });
        PseudoTerminal { master, slave, emulator, child, before }
    }

    fn see<T>(&self, look: impl FnOnce(&Emulator) -> T) -> T {
        look(&self.emulator.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The screen's lines.
    pub(crate) fn shown(&self) -> String {
        self.see(|emulator| emulator.screen.screen().contents())
    }

    /// Whether anything on the screen has a colour.
    pub(crate) fn has_colours(&self) -> bool {
        self.see(|emulator| {
            let screen = emulator.screen.screen();
            let (rows, columns) = screen.size();
            let mut cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            cells.any(|(row, column)| {
                screen.cell(row, column).is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
            })
        })
    }

    /// All that the program wrote.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.see(|emulator| emulator.bytes.clone())
    }

    /// Waits until the screen is as it should be, and returns it.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let mut shown = String::new();
        let started = std::time::Instant::now();
        until(SOON * 2, what, || {
            shown = self.shown();
            let is_late = started.elapsed() >= SOON;
            assert!(!is_late || is_so(&shown), "the terminal never had {what}:\n{shown}");
            is_so(&shown)
        });
        shown
    }

    /// Waits until the screen has this text.
    #[track_caller]
    pub(crate) fn until_has(&self, text: &str) -> String {
        self.until(text, |shown| shown.contains(text))
    }

    /// Presses keys.
    pub(crate) fn press(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size, which the program is told.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.emulator
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .screen
            .screen_mut()
            .set_size(rows, columns);
        tcsetwinsize(&self.slave, size(columns, rows)).unwrap();
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for the program's end, and sees that the terminal is as it was.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let status = until_some(SOON, "the program to end", || self.child.try_wait().unwrap());
        let now = tcgetattr(&self.slave).unwrap();
        assert_eq!(format!("{now:?}"), format!("{:?}", self.before), "the terminal's settings");
        // What it wrote last may still be on its way.
        until(SOON, "the screen and the cursor to be back", || {
            self.see(|emulator| {
                let screen = emulator.screen.screen();
                !screen.alternate_screen() && !screen.hide_cursor()
            })
        });
        status
    }
}

impl Drop for PseudoTerminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

const fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
