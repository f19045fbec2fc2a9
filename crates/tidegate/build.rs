//! Tells the program which commit it was made from: that in `TIDEGATE_COMMIT`, for builds from a tarball, or else that
//! of the git working copy in which this file is tracked. Without either it is not said.
//! Its date, in seconds since 1970, is in `TIDEGATE_DATE`: the program doubts a clock that is behind it.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=TIDEGATE_COMMIT");
    let named = std::env::var("TIDEGATE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(checked_out).unwrap_or_default();
    // A version string cannot contain other characters.
    let commit: String = commit.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let long = if commit.is_empty() { version } else { format!("{version} ({commit})") };
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    // That of the commit, so that the same sources make the same program.
    let date =
        given.or_else(|| checked_out().and_then(|_| git(&["log", "-1", "--format=%ct"]))).unwrap_or_default();
    let date: String = date.chars().filter(char::is_ascii_digit).take(19).collect();
    println!("cargo:rustc-env=TIDEGATE_DATE={date}");
    println!("cargo:rustc-env=TIDEGATE_COMMIT={commit}");
    println!("cargo:rustc-env=TIDEGATE_VERSION={long}");
}

/// The commit of the working copy, where this is one and not merely somewhere inside another.
fn checked_out() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
