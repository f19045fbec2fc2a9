//! Promise: a panic gives the terminal back before it says anything.

#![allow(clippy::unwrap_used, reason = "a test")]

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};
use tidegate_top::{Frame, Theme};

const STATUS: &str = include_str!("../../console/src/tests/golden/healthy.json");
/// Leaves the other screen.
const LEAVES: &str = "\u{1b}[?1049l";

/// The other half of the test below, in a process and on a terminal of its own.
#[test]
#[ignore = "panics, which `a_panic_gives_the_terminal_back` wants"]
fn panics_on_purpose() {
    let first = Frame::parse(STATUS).unwrap();
    let fetch = || panic!("on purpose");
    let error = tidegate_top::run("here".to_owned(), first, fetch, Theme::of_environment()).unwrap_err();
    assert!(error.to_string().contains("a part of the program failed"), "{error}");
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = File::options().read(true).write(true).open(name).unwrap();
    tcsetwinsize(&slave, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let before = format!("{:?}", tcgetattr(&slave).unwrap());
    let end = || Stdio::from(slave.try_clone().unwrap());
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(std::env::current_exe().unwrap());
    command.args(["--exact", "panics_on_purpose", "--ignored", "--nocapture"]);
    let mut child = command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    let mut master = File::from(master);
    let mut shown = String::new();
    let mut piece = [0; 4096];
    while !shown.contains("test result") {
        let read = master.read(&mut piece).unwrap();
        shown.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    assert!(child.wait().unwrap().success(), "{shown}");
    let (screen, message) = shown.split_once("on purpose").expect(&shown);
    assert!(screen.contains("Overview") && screen.contains(LEAVES), "{shown}");
    assert!(!message.contains(LEAVES), "it is given back once: {shown}");
    assert_eq!(format!("{:?}", tcgetattr(&slave).unwrap()), before);
}
