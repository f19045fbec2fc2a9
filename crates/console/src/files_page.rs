//! The page of `/files`: what each source follows, and its files.

use crate::console::Console;
use crate::files::{FilesError, FilesOrder, FilesQuery, FilesReport, FollowedFile, FollowingSource};
use crate::html::{self, Escaped};
use crate::human::{HumanCount, Plural};
use crate::page::{Align, Block, Section, Table, TableCell, Tone};
use crate::page_buffer::PageBuffer;
use crate::status_format::StatusFormat;
use crate::text;
use std::fmt::{self, Write};
use tidegate_arena::Bytes;
use tidegate_http1::Reply;

const TOO_LONG: &str =
    "the answer would be longer than the 512 KiB that the console may use; ask for fewer files with limit=\n";
const NO_SOURCE: &str = "No source of this gateway follows files: configure `sources.file.inputs`.";

impl Console {
    /// The files that `query` selects. One answer at a time is made.
    pub(crate) async fn files(&self, query: FilesQuery, form: StatusFormat) -> Reply {
        let _one_at_a_time = self.listing_files().await;
        let report = match self.gateway().files(&query).await {
            Ok(report) => report,
            Err(error) => {
                let reply = match &error {
                    FilesError::Query(_) => Reply::new(400),
                    FilesError::Later(_) => Reply::new(503).retry_after(1),
                };
                return reply.headers(&crate::console::DATA_HEADERS).content(format!("{error}\n"));
            }
        };
        let made = PageBuffer::take(self.arena()).and_then(|mut sheet| match form {
            StatusFormat::Json => {
                let written = serde_json::to_writer(&mut sheet, &report);
                sheet.whole(written)
            }
            StatusFormat::Html => {
                let written = write_html(&report, &query, &mut sheet);
                sheet.cut(written, html::CUT)
            }
            StatusFormat::Text => {
                let written = write_text(&report, &query, &mut sheet);
                sheet.cut(written, text::CUT)
            }
        });
        let headers: &[_] = if form == StatusFormat::Html {
            &crate::console::FORM_HEADERS
        } else {
            &crate::console::DATA_HEADERS
        };
        match made {
            Ok(window) => Reply::new(200).content_type(form.content_type()).headers(headers).content(window),
            Err(failure) => crate::console::failed(failure, TOO_LONG),
        }
    }
}

pub(crate) fn write_html(report: &FilesReport, query: &FilesQuery, out: &mut dyn Write) -> fmt::Result {
    html::begin("files", &[], out)?;
    writeln!(out, "<header class=\"plain\">\n<h1>Files</h1>\n<p>Log files that sources follow.</p>")?;
    writeln!(out, "<p class=\"dim\"><a href=\"/status\">status</a></p>\n</header>")?;
    writeln!(out, "<form action=\"/files\">")?;
    writeln!(
        out,
        "<label>Paths with <input name=\"match\" value=\"{}\" placeholder=\"*.log\"></label>",
        Escaped(&query.pattern)
    )?;
    writeln!(out, "<button>Show</button>\n</form>")?;
    sections(report, query).iter().try_for_each(|section| html::section(section, out))?;
    writeln!(out, "<footer>the same as <a href=\"/files.json\">JSON</a> or as")?;
    writeln!(
        out,
        "<a href=\"/files?format=text\">text</a>; <code>tidegate file ls --all</code> lists all of them</footer>"
    )?;
    writeln!(out, "</main>\n</body>\n</html>")
}

pub(crate) fn write_text(report: &FilesReport, query: &FilesQuery, out: &mut dyn Write) -> fmt::Result {
    sections(report, query).iter().try_for_each(|section| text::section(section, out))
}

fn sections(report: &FilesReport, query: &FilesQuery) -> Vec<Section> {
    if report.sources.is_empty() {
        let blocks = vec![Block::Say(TableCell::new(NO_SOURCE))];
        return vec![Section { title: "Sources", blocks }];
    }
    let of_sources = report.sources.iter().flat_map(blocks_of).collect();
    vec![Section { title: "Sources", blocks: of_sources }, files(report, query)]
}

fn blocks_of(source: &FollowingSource) -> Vec<Block> {
    let FollowingSource { name, known, lag_bytes, held, held_bytes, untracked, unreadable, .. } = source;
    let held = match held {
        0 => TableCell::new("none"),
        held => {
            TableCell::new(format!("{}, which take {} of disk space", HumanCount(*held), Bytes(*held_bytes)))
        }
    };
    let left_out = match untracked {
        0 => TableCell::new("none"),
        files => TableCell::new(format!("{}: raise `max_files`", HumanCount(*files))).tone(Tone::Bad),
    };
    let mut blocks = vec![
        Block::About((*name).to_owned()),
        Block::Facts(vec![
            ("files", TableCell::count(*known)),
            ("lag", TableCell::bytes(*lag_bytes)),
            ("held without a name", held),
            ("not read", left_out),
        ]),
    ];
    if !unreadable.is_empty() {
        blocks.push(Block::Rows(Table {
            columns: &[("cannot be read", Align::Left), ("why", Align::Left)],
            rows: unreadable
                .iter()
                .map(|path| vec![TableCell::new(&*path.path).tone(Tone::Bad), TableCell::new(&*path.reason)])
                .collect(),
        }));
    }
    blocks
}

fn files(report: &FilesReport, query: &FilesQuery) -> Section {
    let matching: u64 = report.sources.iter().map(|source| source.matching).sum();
    let shown = report.files.len() as u64;
    let which = match &query.order {
        FilesOrder::Lag if shown < matching => ", those with the most lag",
        FilesOrder::Lag => "",
        FilesOrder::Page(_) => ", a page of them",
    };
    let words = format!("{} of {}{which}", HumanCount(shown), Plural(matching, "file"));
    let table = Table {
        columns: &[
            ("path", Align::Left),
            ("input", Align::Left),
            ("state", Align::Left),
            ("offset", Align::Right),
            ("size", Align::Right),
            ("lag", Align::Right),
            ("lines/s", Align::Right),
            ("", Align::Left),
        ],
        rows: report.files.iter().map(row).collect(),
    };
    Section { title: "Files", blocks: vec![Block::Say(TableCell::new(words)), Block::Rows(table)] }
}

fn row(file: &FollowedFile) -> Vec<TableCell> {
    let tone = if file.state == "reading" { Tone::Plain } else { Tone::Dim };
    let is_usual = matches!(file.state, "skipped" | "copy");
    vec![
        TableCell::new(&*file.path),
        TableCell::new(&*file.input),
        TableCell::new(file.state).tone(tone),
        TableCell::bytes(file.offset),
        TableCell::bytes(file.size),
        TableCell::bytes(file.lag_bytes),
        TableCell::new(format!("{:.1}", file.records_per_second)),
        TableCell::new(file.reason.as_deref().unwrap_or_default()).bad_if(file.reason.is_some() && !is_usual),
    ]
}
