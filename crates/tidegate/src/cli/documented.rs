//! The commands in the documentation are commands of this program.

use super::Cli;
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::fs;
use std::path::{Path, PathBuf};

/// Every `tidegate …` in a block of the pages parses: the subcommand exists, and so do its flags.
#[test]
fn every_documented_command_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages: Vec<PathBuf> =
        entries.filter(|page| page.extension().is_some_and(|extension| extension == "md")).collect();
    let mut wrong = Vec::new();
    let mut found = 0;
    for page in pages.into_iter().chain([root.join("README.md")]) {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            found += 1;
            if let Err(error) = parsed(&command) {
                wrong.push(format!("{}: {}\n{error}", page.display(), command.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found > 50, "{found} commands");
}

#[test]
fn commands_are_found_in_blocks() {
    let text = "tidegate prose\n\n    tidegate plan --rate '5k spans/s' \\\n      --outage 6h   # a comment\n    A=b tidegate top | less\n\n\
                ```console\n$ tidegate lake ls > file\ntidegate: an answer\n```\n```yaml\ntidegate: run\n```\n";
    let expected: [&[&str]; 3] = [
        &["tidegate", "plan", "--rate", "5k spans/s", "--outage", "6h"],
        &["tidegate", "top"],
        &["tidegate", "lake", "ls"],
    ];
    assert_eq!(commands(text), expected);
}

fn parsed(command: &[String]) -> Result<(), clap::Error> {
    let has_placeholder = command.iter().any(|word| is_placeholder(word));
    let Err(error) = Cli::command().try_get_matches_from(command) else { return Ok(()) };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(()),
        // `N` is no number.
        ErrorKind::ValueValidation | ErrorKind::InvalidValue if has_placeholder => Ok(()),
        _ => Err(error),
    }
}

/// A word in capitals stands for a value of the reader's.
fn is_placeholder(word: &str) -> bool {
    word.contains(|char: char| char.is_ascii_uppercase())
        && !word.contains(|char: char| char.is_ascii_lowercase())
}

/// The commands of this program in indented blocks, and behind `$` in blocks of `console` or anywhere in those of `sh`.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut fence: Option<&str> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
            continue;
        }
        let typed = match fence {
            None => line.strip_prefix("    "),
            Some("console") => line.strip_prefix("$ "),
            Some("sh") => Some(line),
            Some(_) => None,
        };
        let Some(typed) = typed else { continue };
        let mut typed = typed.trim().to_owned();
        while let Some(begun) = typed.strip_suffix('\\') {
            typed = format!("{begun} {}", lines.next().unwrap_or_default().trim());
        }
        commands.extend(command(words(&typed)));
    }
    commands
}

/// The words from `tidegate` on, which stands first or behind assignments.
fn command(words: Vec<String>) -> Option<Vec<String>> {
    let first = words.iter().position(|word| !word.contains('='))?;
    let command: Vec<String> = words.into_iter().skip(first).collect();
    (command.len() > 1 && command.first().is_some_and(|word| word == "tidegate")).then_some(command)
}

/// The words of a line as a shell has them, up to a comment, a pipe, a redirection or the next command.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for char in line.chars() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(char),
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            (None, '|' | '>' | '<' | '&' | ';') => break,
            (None, _) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}
