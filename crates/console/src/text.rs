//! The page as aligned text, for terminals.

use crate::page::{Align, Block, Gauge, Page, Section, Table, TableCell, Tone};
use std::fmt::{self, Write};

/// Replaces the part that did not fit.
pub(crate) const CUT: &str =
    "\n[cut here: the answer would be longer than the 512 KiB that the console may use]\n";

/// How wide a gauge is.
const GAUGE: usize = 40;

/// Writes `page` as text.
pub(crate) fn write(page: &Page, out: &mut dyn Write) -> fmt::Result {
    let verdict = &page.verdict;
    writeln!(out, "{}: {}", verdict.state.word(), Plain(&verdict.reason))?;
    writeln!(out, "{}\n", Plain(&page.about))?;
    for each in &page.gauges {
        gauge(each, out)?;
    }
    page.sections.iter().try_for_each(|each| section(each, out))
}

fn gauge(gauge: &Gauge, out: &mut dyn Write) -> fmt::Result {
    // Resident memory if known, else the reservation.
    let level = match gauge.marks.first() {
        Some((_, percent)) => *percent,
        None => gauge.parts.iter().map(|part| part.percent).sum(),
    };
    let filled = ((level / 100.0 * GAUGE as f64).round() as usize).min(GAUGE);
    let bar = format!("{}{}", "#".repeat(filled), ".".repeat(GAUGE - filled));
    writeln!(out, "{:<8} [{bar}] {}", gauge.name, gauge.words)
}

pub(crate) fn section(section: &Section, out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "\n{}", section.title.to_uppercase())?;
    for block in &section.blocks {
        match block {
            Block::Say(cell) => writeln!(out, "  {}{}", flag(cell), Plain(&cell.text))?,
            Block::About(about) => writeln!(out, "\n  {}", Plain(about))?,
            Block::Facts(facts) => self::facts(facts, out)?,
            Block::Rows(table) => rows(table, out)?,
        }
    }
    Ok(())
}

fn facts(facts: &[(&'static str, TableCell)], out: &mut dyn Write) -> fmt::Result {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, cell) in facts {
        writeln!(out, "    {name:<width$}  {}{}", flag(cell), Plain(&cell.text))?;
    }
    Ok(())
}

fn rows(table: &Table, out: &mut dyn Write) -> fmt::Result {
    if table.rows.is_empty() {
        return writeln!(out, "    none");
    }
    let titles: Vec<String> = table.columns.iter().map(|(title, _)| (*title).to_owned()).collect();
    let shown = |cell: &TableCell| format!("{}{}", flag(cell), Plain(&cell.text));
    let mut lines = vec![titles];
    lines.extend(table.rows.iter().map(|row| row.iter().map(shown).collect()));
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| lines.iter().filter_map(|line| line.get(column)).map(|text| text.chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    for line in &lines {
        let mut text = String::new();
        for ((cell, width), (_, align)) in line.iter().zip(&widths).zip(table.columns) {
            match align {
                Align::Left => write!(text, "  {cell:<width$}")?,
                Align::Right => write!(text, "  {cell:>width$}")?,
            }
        }
        writeln!(out, "  {}", text.trim_end())?;
    }
    Ok(())
}

/// There are no colours here, so what somebody should look at is marked.
fn flag(cell: &TableCell) -> &'static str {
    if cell.tone == Tone::Bad { "! " } else { "" }
}

/// A text without what could steer a terminal, or look like another line.
struct Plain<'a>(&'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| f.write_char(crate::human::harmless(c)))
    }
}
