//! The documentation is whole: every page is in the table of contents, and every link leads somewhere.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Every page of `docs/` is in `SUMMARY.md` once, and every entry of it exists.
#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let docs = root().join("docs");
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for link in links(&read(&docs.join("SUMMARY.md"))) {
        *listed.entry(link.target).or_default() += 1;
    }
    let twice: Vec<_> = listed.iter().filter(|(_, times)| **times > 1).map(|(page, _)| page).collect();
    assert!(twice.is_empty(), "in SUMMARY.md more than once: {twice:?}");
    let listed: BTreeSet<String> = listed.into_keys().collect();
    let pages: BTreeSet<String> =
        pages(&docs).iter().map(|page| name(page)).filter(|page| page != "SUMMARY.md").collect();
    let missing: Vec<_> = pages.difference(&listed).collect();
    let extra: Vec<_> = listed.difference(&pages).collect();
    assert!(missing.is_empty() && extra.is_empty(), "not in SUMMARY.md: {missing:?}; only there: {extra:?}");
}

/// Every relative link and image leads to a file, and a `#fragment` to a heading of it.
#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let root = root();
    let sources =
        [pages(&root.join("docs")), pages(&root.join("design")), vec![root.join("README.md")]].concat();
    let mut headings: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    let mut broken = Vec::new();
    let mut followed = 0;
    for source in &sources {
        for link in links(&read(source)) {
            if link.target.contains("://") || link.target.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (path, fragment) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let file = match path {
                "" => source.clone(),
                path => normal(&source.parent().unwrap_or(Path::new("")).join(path)),
            };
            let at = format!("{}:{}: {}", name(source), link.line, link.target);
            if !file.exists() {
                broken.push(format!("{at}: there is no such file"));
            } else if !fragment.is_empty() && file.extension().is_some_and(|extension| extension == "md") {
                let known = headings.entry(file).or_insert_with_key(|file| slugs(&read(file)));
                if !known.contains(fragment) {
                    broken.push(format!("{at}: there is no such heading"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(followed > 100, "{followed} links");
}

#[test]
fn slugs_are_those_of_github() {
    let text =
        "# `type: lake`\n## A [link](there.md), and more_words\n## Twice\n```\n# no heading\n```\n## Twice\n";
    let expected = ["type-lake", "a-link-and-more_words", "twice", "twice-1"];
    assert_eq!(slugs(text), expected.map(str::to_owned).into());
}

#[test]
fn links_are_found_outside_of_code_alone() {
    let text = "See [a](a.md#b) and `[c](c.md)`.\n\n    [d](d.md)\n\n```\n[e](e.md)\n```\n![f](f.png), [two\nlines](g.md).\n";
    let found: Vec<(String, usize)> = links(text).into_iter().map(|link| (link.target, link.line)).collect();
    assert_eq!(
        found,
        [("a.md#b", 1), ("f.png", 8), ("g.md", 9)].map(|(target, line)| (target.to_owned(), line))
    );
}

struct Link {
    target: String,
    /// The line on which the target is, from 1.
    line: usize,
}

/// The targets of inline links and images in prose: code spans and code blocks have none.
fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, prose) in prose(text) {
        let outside_of_code: String = prose.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in outside_of_code.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                found.push(Link { target: target.to_owned(), line });
            }
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub makes them.
fn slugs(text: &str) -> BTreeSet<String> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut slugs = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = without_targets(title.trim())
            .to_lowercase()
            .chars()
            .filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'))
            .map(|char| if char == ' ' { '-' } else { char })
            .collect();
        let earlier = times.entry(slug.clone()).or_default();
        slugs.insert(if *earlier == 0 { slug } else { format!("{slug}-{earlier}") });
        *earlier += 1;
    }
    slugs
}

/// `[text](target)` becomes `[text]`.
fn without_targets(title: &str) -> String {
    let mut parts = title.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once(')').map_or(part, |(_, behind)| behind));
    }
    text
}

/// Lines outside of code blocks, with their numbers from 1. A block is fenced, or indented behind an empty line.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut prose = Vec::new();
    let (mut fenced, mut indented, mut list) = (false, false, false);
    let mut above = "";
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let deep = line.starts_with("    ");
            list = if line.starts_with([' ', '\t']) || line.is_empty() { list } else { is_item(line) };
            indented = deep && !list && (indented || above.trim().is_empty()) || indented && line.is_empty();
            if !indented {
                prose.push((number + 1, line));
            }
        }
        above = line;
    }
    prose
}

fn is_item(line: &str) -> bool {
    let numbered = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    line.starts_with("- ") || line.starts_with("* ") || numbered
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        entries.filter(|page| page.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    pages
}

/// Without `..`, which a file system would follow through folders that need not exist.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

fn root() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn name(page: &Path) -> String {
    page.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
