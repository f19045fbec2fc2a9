//! Every snippet is read by a parser of its language.

use super::configurations::{CONFIGURATIONS, config, sender};
use crate::{Gateway, KINDS, Language};
use std::io::Write as _;
use std::process::{Command, Stdio};

#[test]
fn every_snippet_is_valid_in_its_language() {
    let mut shell = Vec::new();
    let mut counted = [0; 3];
    for text in CONFIGURATIONS {
        let (config, sender) = (config(text), sender());
        for kind in KINDS {
            let Ok(instructions) = kind.instructions(Gateway::new(&config, &sender)) else { continue };
            assert!(!instructions.snippets.is_empty(), "{}", kind.name);
            for snippet in instructions.snippets {
                let content = &snippet.content;
                assert!(content.ends_with('\n') && !snippet.title.is_empty(), "{}", kind.name);
                let wrong = |error: String| format!("{} for {text}:\n{content}\n{error}", kind.name);
                match snippet.language {
                    Language::Yaml => {
                        let parsed = tidegate_config::yaml_as_json(kind.name, content);
                        counted[0] += 1;
                        let parsed = parsed.unwrap_or_else(|error| panic!("{}", wrong(format!("{error:?}"))));
                        assert!(parsed.is_object(), "{}: {content}", kind.name);
                    }
                    Language::Json => {
                        counted[1] += 1;
                        serde_json::from_str::<serde_json::Value>(content)
                            .unwrap_or_else(|error| panic!("{}", wrong(error.to_string())));
                    }
                    Language::Toml => {
                        counted[2] += 1;
                        content
                            .parse::<toml::Table>()
                            .unwrap_or_else(|error| panic!("{}", wrong(error.to_string())));
                    }
                    Language::Shell => shell.push((kind.name, content.clone())),
                    Language::Alloy | Language::Conf => braces_close(kind.name, content),
                }
            }
        }
    }
    assert!(counted.iter().all(|count| *count > 0), "{counted:?}");
    for (kind, content) in shell {
        shell_reads(kind, &content);
    }
}

/// Strings end, and what is opened is closed, outside of strings and comments.
fn braces_close(kind: &str, content: &str) {
    let mut open = Vec::new();
    let mut in_string = false;
    let mut characters = content.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' if in_string => {
                characters.next();
            }
            '"' => in_string = !in_string,
            '\n' => assert!(!in_string, "{kind}: a string goes on in the next line\n{content}"),
            '{' | '(' | '[' | '<' if !in_string => open.push(c),
            '}' | ')' | ']' if !in_string => {
                let opened = open.pop();
                let pairs = matches!((opened, c), (Some('{'), '}') | (Some('('), ')') | (Some('['), ']'));
                assert!(pairs, "{kind}: {opened:?} {c}\n{content}");
            }
            // Also that of `=>`.
            '>' if !in_string && open.last() == Some(&'<') => {
                open.pop();
            }
            _ => {}
        }
    }
    assert!(!in_string && open.is_empty(), "{kind}: {open:?}\n{content}");
}

/// `sh -n` reads it, and finds no fault.
fn shell_reads(kind: &str, content: &str) {
    let mut child =
        Command::new("sh").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{kind}: {errors}\n{content}");
}
