//! The contents of `/status`, independent of HTML or text.

mod books;
mod destination;
mod fleet;
mod handshakes;
mod journal;
mod left_behind;
mod memory;
mod sinks;
mod source_pipelines;
mod tenants;

use crate::human::HumanDuration;
use crate::state::StateReport;
use crate::status::Status;
use jiff::Timestamp;
use tidegate_arena::Bytes;

/// The whole page. Texts are as they came; who shows them makes them harmless.
pub(crate) struct Page {
    pub(crate) verdict: StateReport,
    /// One line about the program and the moment.
    pub(crate) about: String,
    pub(crate) gauges: Vec<Gauge>,
    pub(crate) sections: Vec<Section>,
}

/// How full something is: what the eye meets first.
pub(crate) struct Gauge {
    pub(crate) name: &'static str,
    /// The numbers, in words.
    pub(crate) words: String,
    /// Parts of the whole, in percent, one behind the other.
    pub(crate) parts: Vec<GaugePart>,
    /// Marks on the same scale, in percent.
    pub(crate) marks: Vec<(&'static str, f64)>,
}

/// A part of a gauge.
pub(crate) struct GaugePart {
    pub(crate) name: String,
    pub(crate) percent: f64,
    pub(crate) bytes: u64,
}

/// Something with a title.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) blocks: Vec<Block>,
}

/// A building block of a section.
pub(crate) enum Block {
    /// A sentence.
    Say(TableCell),
    /// The heading of the next blocks.
    About(String),
    /// Names and values.
    Facts(Vec<(&'static str, TableCell)>),
    /// Rows under columns.
    Rows(Table),
}

/// Rows under columns.
pub(crate) struct Table {
    pub(crate) columns: &'static [(&'static str, Align)],
    pub(crate) rows: Vec<Vec<TableCell>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A text, and how it is meant.
pub(crate) struct TableCell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Of little weight.
    Dim,
    /// As it should be.
    Good,
    /// Somebody should look.
    Bad,
}

impl Page {
    pub(crate) fn of(status: &Status) -> Page {
        let at = Timestamp::try_from(status.at).map(|at| format!("{at:.0}")).unwrap_or_default();
        Page {
            verdict: StateReport::of(status),
            about: format!(
                "tidegate {}{}, up {}, {at}",
                status.version,
                status.commit.as_ref().map(|commit| format!(" ({commit})")).unwrap_or_default(),
                HumanDuration(status.uptime)
            ),
            gauges: vec![memory::gauge(&status.memory), journal::gauge(&status.journal)],
            sections: [
                Some(books::section(&status.books)),
                status.tenants.as_ref().map(tenants::section),
                status.handshakes.as_ref().map(handshakes::section),
                status.fleet.as_ref().map(fleet::section),
                status.destination.as_ref().map(|destination| destination::section(destination, status.at)),
                source_pipelines::section(&status.source_pipelines),
                Some(sinks::section(&status.sinks, status.at)),
                left_behind::section(&status.left_behind),
                Some(journal::section(&status.journal)),
                Some(memory::section(&status.memory)),
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    }
}

impl TableCell {
    pub(crate) fn new(text: impl Into<String>) -> TableCell {
        TableCell { text: text.into(), tone: Tone::Plain }
    }

    pub(crate) fn bytes(bytes: u64) -> TableCell {
        TableCell::new(Bytes(bytes).to_string())
    }

    pub(crate) fn count(count: u64) -> TableCell {
        TableCell::new(crate::human::HumanCount(count).to_string())
    }

    /// The placeholder for an unknown or missing value.
    pub(crate) fn none() -> TableCell {
        TableCell { text: "–".to_owned(), tone: Tone::Dim }
    }

    pub(crate) fn maybe_bytes(bytes: Option<u64>) -> TableCell {
        bytes.map_or_else(TableCell::none, TableCell::bytes)
    }

    #[must_use]
    pub(crate) fn tone(mut self, tone: Tone) -> TableCell {
        self.tone = tone;
        self
    }

    /// Bad when `bad`.
    #[must_use]
    pub(crate) fn bad_if(self, bad: bool) -> TableCell {
        if bad { self.tone(Tone::Bad) } else { self }
    }
}
