//! `/pipelines`: the configured pipelines with their counts, and a form in which steps are tried.

use crate::html::{self, Escaped};
use crate::human::HumanCount;
use crate::status::{PipelineStep, Status};
use std::fmt::{self, Write};

/// The most bytes of the page around the form and its results: so much is kept for it of an answer.
pub(crate) const AROUND: usize = 176 << 10;
/// The most bytes of steps on the page, over all pipelines: as they may become five times as long as markup.
pub const LONGEST_LISTED: usize = 16 << 10;
/// The most pipelines that are listed.
pub const MOST_LISTED: usize = 64;

const STYLE: &str = include_str!("html/pipelines.css");

/// A configured pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPipeline {
    /// Its name.
    pub name: String,
    /// The sources that have it.
    pub sources: Vec<&'static str>,
    /// The sinks that have it.
    pub sinks: Vec<String>,
    /// Its steps as they are written in the configuration; `None` where they are too long to be listed.
    pub steps: Option<String>,
}

/// Writes the page up to the form.
pub(crate) fn begin(
    status: &Status,
    pipelines: Option<&[ListedPipeline]>,
    out: &mut dyn Write,
) -> fmt::Result {
    html::begin("pipelines", &[STYLE], out)?;
    writeln!(out, "<header class=\"plain\">\n<h1>Pipelines</h1>")?;
    writeln!(out, "<p>Steps behind sources and before sinks, and a place to try others.</p>")?;
    writeln!(
        out,
        "<p class=\"dim\">tidegate {}; <a href=\"/status\">status</a></p>\n</header>",
        Escaped(&status.version)
    )?;
    writeln!(out, "<section>\n<h2>Configured</h2>")?;
    match pipelines {
        None => writeln!(
            out,
            "<p class=\"say dim\">The configuration is being changed: reload the page in a moment.</p>"
        )?,
        Some([]) => writeln!(
            out,
            "<p class=\"say dim\">No pipeline is configured. Steps can be tried all the same.</p>"
        )?,
        Some(pipelines) => {
            // A few are open, many are a list.
            let open = if pipelines.len() <= 2 { " open" } else { "" };
            pipelines.iter().take(MOST_LISTED).try_for_each(|it| pipeline(it, status, open, out))?;
        }
    }
    writeln!(out, "</section>")
}

/// Ends the page.
pub(crate) fn end(out: &mut dyn Write) -> fmt::Result {
    writeln!(
        out,
        "<footer>see also <a href=\"/status\">the status</a> and <a href=\"/metrics\">all metrics</a></footer>"
    )?;
    writeln!(out, "</main>\n</body>\n</html>")
}

fn pipeline(pipeline: &ListedPipeline, status: &Status, open: &str, out: &mut dyn Write) -> fmt::Result {
    let ListedPipeline { name, sources, sinks, steps } = pipeline;
    let counts = counts_of(name, status);
    let behind = match sources.as_slice() {
        [] => None,
        [one] => Some(format!("behind the source {one}")),
        several => Some(format!("behind the sources {}", several.join(", "))),
    };
    let before = match sinks.as_slice() {
        [] => None,
        [one] => Some(format!("before the sink {one}")),
        several => Some(format!("before the sinks {}", several.join(", "))),
    };
    let used = match (behind, before) {
        (None, None) => "no source or sink uses it".to_owned(),
        (Some(one), None) | (None, Some(one)) => one,
        (Some(behind), Some(before)) => format!("{behind}; {before}"),
    };
    writeln!(out, "<details{open}>\n<summary><b>{}</b>, {}</summary>", Escaped(name), Escaped(&used))?;
    if !counts.is_empty() {
        writeln!(out, "<div class=\"wide\"><table>\n<tr>")?;
        for (title, side) in [
            ("Step", "left"),
            ("Where", "left"),
            ("Items", "right"),
            ("Filtered", "right"),
            ("Sampled out", "right"),
            ("Failed", "right"),
        ] {
            writeln!(out, "<th scope=\"col\" class=\"{side}\">{title}</th>")?;
        }
        writeln!(out, "</tr>")?;
        for (kind, place, step) in counts {
            write!(
                out,
                "<tr><td class=\"left\">{}</td><td class=\"left\">{kind} {}</td>",
                Escaped(&step.step),
                Escaped(place)
            )?;
            for count in [step.items, step.filtered, step.sampled_out] {
                write!(out, "<td class=\"right\">{}</td>", HumanCount(count))?;
            }
            let class = if step.failures > 0 { " bad" } else { "" };
            writeln!(out, "<td class=\"right{class}\">{}</td></tr>", HumanCount(step.failures))?;
        }
        writeln!(out, "</table></div>")?;
    }
    match steps {
        Some(steps) => {
            writeln!(out, "<pre>")?;
            for line in steps.lines() {
                writeln!(out, "{}", Escaped(line))?;
            }
            writeln!(out, "</pre>")?;
        }
        None => writeln!(out, "<p class=\"say dim\">Its steps are too long to be listed here.</p>")?,
    }
    writeln!(
        out,
        "<p class=\"say\"><a href=\"/pipelines?load={0}#try\">Try these steps</a></p>\n</details>",
        Escaped(name)
    )
}

/// The counts of a pipeline's steps, by source and then by sink.
fn counts_of<'a>(name: &str, status: &'a Status) -> Vec<(&'static str, &'a str, &'a PipelineStep)> {
    let sources = status.source_pipelines.iter().map(|it| ("source", it.source.as_str(), &it.steps));
    let sinks = status.sinks.iter().map(|sink| ("sink", sink.name.as_str(), &sink.pipeline));
    let all = sources
        .chain(sinks)
        .flat_map(|(kind, place, steps)| steps.iter().map(move |step| (kind, place, step)));
    all.filter(|(_, _, step)| step.pipeline == name).collect()
}
