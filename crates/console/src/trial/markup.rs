//! A trial as a part of the page: the form, and below it what came of it.

use super::diff::common;
use super::{ChangeReport, ItemReport, StatementReport, TextProblem, TrialForm, TrialReport};
use crate::html::Escaped;
use crate::human::{Plural, harmless};
use serde_json::Value as Json;
use std::fmt::{self, Write};

/// The longest value that is shown among the changes, in characters.
const LONGEST_VALUE: usize = 400;
/// Room for what stands behind the items.
const ENDING: usize = 512;

/// A text of bounded length: a piece that does not fit is left out.
pub(crate) struct Fragment {
    text: String,
    most: usize,
}

impl Fragment {
    pub(crate) fn new(most: usize) -> Fragment {
        Fragment { text: String::new(), most }
    }

    /// Adds a piece whole, or nothing of it.
    pub(crate) fn push(&mut self, piece: &str) -> bool {
        self.push_before(piece, 0)
    }

    /// As [`push`](Self::push), leaving `rest` bytes for later.
    fn push_before(&mut self, piece: &str, rest: usize) -> bool {
        if self.text.len() + piece.len() + rest > self.most {
            return false;
        }
        self.text.push_str(piece);
        true
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Beside a form without its items.
pub(crate) const NOT_SHOWN: &str =
    "<p class=\"say bad\">The items have so many &lt; and &amp; that the form cannot show them again.</p>\n";

/// The form, filled in.
pub(crate) fn write_form(form: &TrialForm, pipelines: &[String], out: &mut Fragment) {
    let mut text = String::new();
    let _ = form_markup([&form.steps, &form.items], pipelines, &mut text);
    if out.push_before(&text, ENDING) {
        return;
    }
    let mut text = String::new();
    let _ = form_markup([&form.steps, ""], pipelines, &mut text);
    if out.push_before(&text, ENDING + NOT_SHOWN.len()) {
        out.push(NOT_SHOWN);
    }
}

/// The form with these steps and items.
pub(crate) fn form_markup(
    [steps, items]: [&str; 2],
    pipelines: &[String],
    out: &mut impl Write,
) -> fmt::Result {
    writeln!(out, "<section id=\"try\">\n<h2>Try steps</h2>")?;
    writeln!(out, "<form method=\"post\" action=\"/pipelines#results\" enctype=\"multipart/form-data\">")?;
    writeln!(out, "<div class=\"columns\">\n<div>\n<label for=\"steps\">Steps</label>")?;
    writeln!(
        out,
        "<p class=\"hint\" id=\"steps-hint\">YAML as under <code>steps</code> of a pipeline, or rules of \
         <code>write_relabel_configs</code>. To copy them: Ctrl+A, Ctrl+C.</p>"
    )?;
    // The first line end of a text area is not part of its text.
    writeln!(
        out,
        "<textarea id=\"steps\" name=\"steps\" rows=\"14\" wrap=\"off\" spellcheck=\"false\" autocapitalize=\"off\" \
         aria-describedby=\"steps-hint\" placeholder=\"{STEPS_EXAMPLE}\">\n{}</textarea>",
        Verbatim(steps)
    )?;
    if !pipelines.is_empty() {
        write!(out, "<p class=\"choices\">Use the steps of")?;
        for name in pipelines {
            write!(out, " <button formaction=\"/pipelines?load={0}#try\">{0}</button>", Escaped(name))?;
        }
        writeln!(out, "</p>")?;
    }
    writeln!(out, "</div>\n<div>\n<label for=\"items\">Items</label>")?;
    writeln!(
        out,
        "<p class=\"hint\" id=\"items-hint\">One a line: OTLP/JSON as the Collector's file exporter writes it, JSON of the sink \
         <code>http</code>, or series such as <code>up{{job=&quot;a&quot;}}</code>.</p>"
    )?;
    writeln!(
        out,
        "<textarea id=\"items\" name=\"items\" rows=\"14\" wrap=\"off\" spellcheck=\"false\" autocapitalize=\"off\" \
         aria-describedby=\"items-hint\" placeholder=\"{ITEMS_EXAMPLE}\">\n{}</textarea>",
        Verbatim(items)
    )?;
    writeln!(out, "<p class=\"choices\">Take the next items received:")?;
    for signal in ["logs", "traces", "metrics"] {
        writeln!(out, "<button formaction=\"/pipelines?take={signal}#try\">{signal}</button>")?;
    }
    writeln!(out, "</p>\n</div>\n</div>\n<p class=\"choices\"><button class=\"run\">Run</button>")?;
    writeln!(
        out,
        "<span class=\"dim\">A trial changes nothing of the gateway, and nothing of it is stored or logged.</span></p>"
    )?;
    writeln!(out, "</form>\n</section>")
}

const STEPS_EXAMPLE: &str = "- edit:&#10;    - set(log.attributes[&quot;env&quot;], &quot;prod&quot;)&#10;- drop: log.severity_number &lt; SEVERITY_NUMBER_WARN";
const ITEMS_EXAMPLE: &str = "{&quot;signal&quot;: &quot;logs&quot;, &quot;body&quot;: &quot;hello&quot;, &quot;severity_number&quot;: 9}";

/// Result of a trial.
pub(super) fn write_results(report: &TrialReport, out: &mut Fragment) {
    let mut head = String::new();
    let _ = head_markup(report, &mut head);
    if !out.push_before(&head, ENDING) {
        out.push("<section id=\"results\"><p class=\"say bad\">The results are longer than the page may be: try fewer steps.</p></section>\n");
        return;
    }
    let mut left_out = report.items_not_shown;
    for (position, item) in report.items.iter().enumerate() {
        let mut text = String::new();
        let _ = item_markup(position, item, &report.statements, &mut text);
        left_out += usize::from(!out.push_before(&text, ENDING));
    }
    for item in &report.made {
        let pretty = Pretty::of(item).0;
        let text = format!(
            "<article>\n<h3>Made by the steps</h3>\n<pre class=\"lines\">{}</pre>\n</article>\n",
            Lines(&pretty)
        );
        left_out += usize::from(!out.push_before(&text, ENDING));
    }
    if left_out > 0 {
        out.push(&format!(
            "<p class=\"say bad\">{} not shown: the page would be too long.</p>\n",
            Plural(left_out as u64, "more item")
        ));
    }
    out.push("</section>\n");
}

fn head_markup(report: &TrialReport, out: &mut String) -> fmt::Result {
    let dropped = report.items.iter().filter(|item| item.after.is_none()).count();
    let changed = report
        .items
        .iter()
        .filter(|item| item.after.as_ref().is_some_and(|after| *after != item.before))
        .count();
    writeln!(out, "<section id=\"results\">\n<h2>Results")?;
    if !report.items.is_empty() {
        let all = report.items.len() + report.items_not_shown;
        let same = report.items.len() - dropped - changed;
        writeln!(
            out,
            "<small>{}: {changed} changed, {dropped} dropped, {same} unchanged</small>",
            Plural(all as u64, "item")
        )?;
    }
    writeln!(out, "</h2>")?;
    for note in &report.notes {
        writeln!(out, "<p class=\"say\">{}</p>", Escaped(note))?;
    }
    report.steps_problems.iter().try_for_each(|it| problem("Steps", it, out))?;
    for warning in &report.warnings {
        writeln!(out, "<p class=\"say warning\">Warning: {}</p>", Escaped(warning))?;
    }
    report.items_problems.iter().try_for_each(|it| problem("Items", it, out))?;
    if report.statements.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<div class=\"wide\"><table>\n<tr><th scope=\"col\" class=\"left\">Step</th><th scope=\"col\" class=\"left\">Statement</th>"
    )?;
    writeln!(
        out,
        "<th scope=\"col\" class=\"right\">Changed</th><th scope=\"col\" class=\"right\">Dropped</th><th scope=\"col\" class=\"right\">Failed</th></tr>"
    )?;
    for it in &report.statements {
        let failed = if it.failed > 0 { "bad" } else { "plain" };
        let count = |count: usize| if it.explained { count.to_string() } else { "–".to_owned() };
        writeln!(
            out,
            "<tr><td class=\"left\">{}</td><td class=\"left code\">{}</td><td class=\"right\">{}</td><td class=\"right\">{}</td><td class=\"right {failed}\">{}</td></tr>",
            Escaped(&it.step),
            Escaped(&it.what),
            count(it.changed),
            count(it.dropped),
            it.failed
        )?;
    }
    writeln!(out, "</table></div>")
}

fn problem(what: &str, problem: &TextProblem, out: &mut String) -> fmt::Result {
    let TextProblem { line, column, width, excerpt, message, help } = problem;
    write!(out, "<div class=\"problem\">\n<p class=\"say bad\">{what}")?;
    if *line > 0 {
        write!(out, ", line {line}")?;
    }
    writeln!(out, ": {}</p>", Escaped(message))?;
    if !excerpt.is_empty() {
        write!(out, "<pre>{line} | {}", Escaped(excerpt))?;
        if *column > 0 {
            let gutter = line.to_string().len();
            write!(out, "\n{:gutter$} | {:indent$}<b>{:^<width$}</b>", "", "", "", indent = column - 1)?;
        }
        writeln!(out, "</pre>")?;
    }
    if !help.is_empty() {
        writeln!(out, "<p class=\"say\">{}</p>", Escaped(help))?;
    }
    writeln!(out, "</div>")
}

fn item_markup(
    position: usize,
    item: &ItemReport,
    statements: &[StatementReport],
    out: &mut String,
) -> fmt::Result {
    let is_same = item.after.as_ref() == Some(&item.before);
    let (class, word) = match &item.after {
        None => ("dropped", "dropped"),
        Some(_) if is_same => ("same", "unchanged"),
        Some(_) => ("changed", "changed"),
    };
    writeln!(out, "<article class=\"{class}\">")?;
    writeln!(
        out,
        "<h3>Item {}: {} <small>{}, line {}</small></h3>",
        position + 1,
        word,
        item.kind,
        item.line
    )?;
    if let Some(by) = item.dropped_by {
        let what = statements.get(by).map_or_else(String::new, |it| format!("step {}: {}", it.step, it.what));
        writeln!(out, "<p class=\"say bad\">Dropped by {}</p>", Escaped(&what))?;
    }
    trace_markup(&item.changes, statements, out)?;
    let before = Pretty::of(&item.before);
    let Some(after) = item.after.as_ref().filter(|_| !is_same) else {
        // Who wants to see it opens it.
        writeln!(
            out,
            "<details><summary>Item</summary><pre class=\"{}\">{}</pre></details>",
            before.1,
            Lines(&before.0)
        )?;
        return writeln!(out, "</article>");
    };
    let after = Pretty::of(after);
    let (was, is) = (before.pieces(), after.pieces());
    let (kept, kept_after) = common(&was, &is);
    let pair = [("Before", "del", before.1, was, kept), ("After", "ins", after.1, is, kept_after)];
    writeln!(out, "<div class=\"columns\">")?;
    for (title, tag, class, pieces, kept) in pair {
        write!(out, "<div>\n<h4>{title}</h4>\n<pre class=\"{class}\">")?;
        for (piece, kept) in pieces.iter().zip(kept) {
            let tag = if kept { "span" } else { tag };
            write!(out, "<{tag}>{}</{tag}>", Lines(piece))?;
        }
        writeln!(out, "</pre>\n</div>")?;
    }
    writeln!(out, "</div>\n</article>")
}

fn trace_markup(changes: &[ChangeReport], statements: &[StatementReport], out: &mut String) -> fmt::Result {
    if changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "<ul class=\"trace\">")?;
    for (position, change) in changes.iter().enumerate() {
        let is_first = position == 0
            || changes.get(position - 1).is_none_or(|before| before.statement != change.statement);
        if is_first && let Some(it) = statements.get(change.statement) {
            writeln!(
                out,
                "<li class=\"by\">step {}: <code>{}</code></li>",
                Escaped(&it.step),
                Escaped(&it.what)
            )?;
        }
        write!(out, "<li>")?;
        if !change.path.is_empty() {
            write!(out, "<code>{}</code>: ", Escaped(&change.path))?;
        }
        let (was, now) = (short(change.was.as_ref()), short(change.now.as_ref()));
        writeln!(out, "<del>{}</del> → <ins>{}</ins></li>", Escaped(&was), Escaped(&now))?;
    }
    writeln!(out, "</ul>")
}

fn short(value: Option<&Json>) -> String {
    let text = match value {
        None => return "nothing".to_owned(),
        Some(value) => value.to_string(),
    };
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// An item to read, and the class that says how it is laid out.
struct Pretty(String, &'static str);

impl Pretty {
    fn of(item: &Json) -> Pretty {
        match item {
            Json::String(series) => Pretty(series.clone(), "series"),
            item => Pretty(serde_json::to_string_pretty(item).unwrap_or_default(), "lines"),
        }
    }

    /// Its lines; of a series the name and the labels.
    fn pieces(&self) -> Vec<&str> {
        match self.1 {
            "series" => {
                let is_sign = |letter: char| matches!(letter, '{' | ',' | '}');
                let pieces = self.0.split_inclusive(is_sign);
                // The signs are pieces of their own: one of them may stand behind another label then.
                let parts = pieces.flat_map(|piece| {
                    let at = if piece.ends_with(is_sign) { piece.len() - 1 } else { piece.len() };
                    <[&str; 2]>::from(piece.split_at(at))
                });
                parts.filter(|piece| !piece.is_empty()).collect()
            }
            _ => self.0.lines().collect(),
        }
    }
}

/// A text with its line ends and blanks, without what could be markup or turn it round.
struct Lines<'a>(&'a str);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '\n' => f.write_char('\n'),
            c => f.write_char(harmless(c)),
        })
    }
}

/// The very text, for a text area: it comes back as it was.
struct Verbatim<'a>(&'a str);

impl fmt::Display for Verbatim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            c => f.write_char(c),
        })
    }
}
