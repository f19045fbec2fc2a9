//! The page as HTML: one file, no script, readable on a phone and in the dark.

use crate::page::{Align, Block, Gauge, Page, Section, Table, TableCell, Tone};
use crate::state::State;
use std::fmt::{self, Write};

/// Replaces the part that did not fit. It closes elements that may be open; browsers ignore surplus end tags.
pub(crate) const CUT: &str = "</table></dl></section>\n<p class=\"say bad\">Cut here: the page would be longer \
    than the 512 KiB that the console may use.</p>\n</main>\n</html>\n";

const STYLE: &str = include_str!("html/style.css");

/// Writes `page` as HTML. Every line ends outside of tags, so that it can be cut behind any.
pub(crate) fn write(page: &Page, out: &mut dyn Write) -> fmt::Result {
    let word = page.verdict.state.word();
    begin(word, &[], out)?;
    writeln!(out, "<header class=\"{}\">", tone_of(page.verdict.state))?;
    writeln!(out, "<h1>{word}</h1>\n<p>{}</p>", Escaped(&page.verdict.reason))?;
    writeln!(out, "<p class=\"dim\">{}</p>\n</header>", Escaped(&page.about))?;
    for each in &page.gauges {
        gauge(each, out)?;
    }
    for each in &page.sections {
        section(each, out)?;
    }
    writeln!(out, "<footer>the same as <a href=\"/status.json\">JSON</a> or as")?;
    writeln!(out, "<a href=\"/status?format=text\">text</a>; and <a href=\"/metrics\">all metrics</a>;")?;
    writeln!(out, "<a href=\"/pipelines\">pipelines</a> can be tried here;")?;
    writeln!(out, "<a href=\"/files\">files</a> that sources follow</footer>")?;
    writeln!(out, "</main>\n</body>\n</html>")
}

/// Writes the head of a page, up to its first section.
pub(crate) fn begin(title: &str, styles: &[&str], out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<meta name=\"color-scheme\" content=\"light dark\">\n<title>tidegate: {title}</title>")?;
    write!(out, "<style>{STYLE}")?;
    styles.iter().try_for_each(|style| out.write_str(style))?;
    writeln!(out, "</style>\n</head>\n<body>\n<main>")
}

fn gauge(gauge: &Gauge, out: &mut dyn Write) -> fmt::Result {
    writeln!(
        out,
        "<section class=\"gauge\">\n<h2>{} <small>{}</small></h2>",
        gauge.name,
        Escaped(&gauge.words)
    )?;
    // A picture for the eye alone: the words above and the tables below say the same.
    writeln!(out, "<div class=\"bar\" aria-hidden=\"true\">")?;
    let mut left = 100.0_f64;
    for (index, part) in gauge.parts.iter().enumerate() {
        let width = part.percent.clamp(0.0, left);
        left -= width;
        let (kind, name) = (kind(gauge, index), Escaped(&part.name));
        writeln!(out, "<i class=\"part{kind}\" style=\"width:{width:.2}%\" title=\"{name}\"></i>")?;
    }
    for (index, (name, percent)) in gauge.marks.iter().enumerate() {
        let at = percent.clamp(0.0, 100.0);
        writeln!(out, "<b class=\"mark{index}\" style=\"left:{at:.2}%\" title=\"{}\"></b>", Escaped(name))?;
    }
    writeln!(out, "</div>")?;
    if gauge.parts.len() > 1 {
        legend(gauge, out)?;
    }
    writeln!(out, "</section>")
}

/// The only part of a gauge is no overhead, whose colour the first is.
fn kind(gauge: &Gauge, index: usize) -> usize {
    if gauge.parts.len() == 1 { 1 } else { index % KINDS }
}

/// So many colours the parts of a gauge have.
const KINDS: usize = 7;

fn legend(gauge: &Gauge, out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "<p class=\"legend\">")?;
    for (index, part) in gauge.parts.iter().enumerate() {
        let (kind, name, bytes) =
            (kind(gauge, index), Escaped(&part.name), tidegate_arena::Bytes(part.bytes));
        writeln!(out, "<span><i class=\"part{kind}\"></i>{name} {bytes}</span>")?;
    }
    for (index, (name, _)) in gauge.marks.iter().enumerate() {
        writeln!(out, "<span><b class=\"mark{index}\"></b>{}</span>", Escaped(name))?;
    }
    writeln!(out, "</p>")
}

pub(crate) fn section(section: &Section, out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "<section>\n<h2>{}</h2>", section.title)?;
    for block in &section.blocks {
        match block {
            Block::Say(cell) => {
                writeln!(out, "<p class=\"say {}\">{}</p>", class(cell.tone), Escaped(&cell.text))?;
            }
            Block::About(about) => writeln!(out, "<h3>{}</h3>", Escaped(about))?,
            Block::Facts(facts) => self::facts(facts, out)?,
            Block::Rows(table) => rows(table, out)?,
        }
    }
    writeln!(out, "</section>")
}

fn facts(facts: &[(&'static str, TableCell)], out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "<dl>")?;
    for (name, cell) in facts {
        writeln!(out, "<dt>{name}</dt><dd class=\"{}\">{}</dd>", class(cell.tone), Escaped(&cell.text))?;
    }
    writeln!(out, "</dl>")
}

fn rows(table: &Table, out: &mut dyn Write) -> fmt::Result {
    if table.rows.is_empty() {
        return writeln!(out, "<p class=\"say dim\">none</p>");
    }
    // Wider than a phone: the table scrolls, the page does not.
    writeln!(out, "<div class=\"wide\"><table>\n<tr>")?;
    for (title, align) in table.columns {
        writeln!(out, "<th scope=\"col\" class=\"{}\">{title}</th>", side(*align))?;
    }
    writeln!(out, "</tr>")?;
    for row in &table.rows {
        write!(out, "<tr>")?;
        for (cell, (_, align)) in row.iter().zip(table.columns) {
            let (side, class) = (side(*align), class(cell.tone));
            write!(out, "<td class=\"{side} {class}\">{}</td>", Escaped(&cell.text))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table></div>")
}

const fn side(align: Align) -> &'static str {
    match align {
        Align::Left => "left",
        Align::Right => "right",
    }
}

const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Dim => "dim",
        Tone::Good => "good",
        Tone::Bad => "bad",
    }
}

const fn tone_of(state: State) -> &'static str {
    match state {
        State::Flowing => "good",
        State::Draining | State::Stopping => "warn",
        State::PushingBack | State::Spilling => "bad",
    }
}

/// A text that is a text and nothing else, between tags or in a quoted attribute.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            c => f.write_char(crate::human::harmless(c)),
        })
    }
}
