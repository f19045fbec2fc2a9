//! The books as text and as JSON, for `/status`.

use std::fmt::{self, Write};

use super::{Balance, ForwardedBalance, JournalBalance, PipelineBalance, SinkBalance, SourceBalance};

impl Balance {
    /// The books as one JSON object.
    pub fn json(&self) -> String {
        let mut out = String::new();
        let sources = list(&self.sources, source_json);
        let sinks = list(&self.sinks, sink_json);
        let JournalBalance { accepted, handed_over, appended, difference } = self.journal;
        // Writing to a String cannot fail.
        let _infallible = write!(
            out,
            "{{\"difference\":{},\"sources\":[{sources}],\"journal\":{{\"accepted\":{accepted},\
             \"handed_over\":{handed_over},\"appended\":{appended},\"difference\":{difference}}},\
             \"sinks\":[{sinks}]}}",
            self.difference()
        );
        out
    }
}

/// The books as equations, one line each.
impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "requests: received = accepted + refused + open")?;
        for source in &self.sources {
            let SourceBalance { name, received, accepted, refused, open, items_refused, difference, .. } =
                source;
            let refused = sum(refused.iter().map(|(reason, count)| (reason.name(), *count)));
            write!(
                f,
                "  {name}: {received} = {accepted} + {refused} + {open}{}",
                DifferenceWarning(*difference)
            )?;
            if !items_refused.is_empty() {
                let items = sum(items_refused.iter().map(|(reason, count)| (reason.name(), *count)));
                write!(f, "; items refused of those accepted: {items}")?;
            }
            writeln!(f)?;
        }
        let forwards: Vec<_> =
            self.sources.iter().filter(|source| source.forwarded != ForwardedBalance::default()).collect();
        if !forwards.is_empty() {
            writeln!(f, "items: forwarded = answered + rejected + unanswered + refused + abandoned + open")?;
        }
        for SourceBalance { name, forwarded, .. } in forwards {
            let ForwardedBalance { received, fates, open, difference } = forwarded;
            let fates = sum(fates.iter().map(|(fate, count)| (fate.name(), *count)));
            writeln!(f, "  {name}: {received} = {fates} + {open}{}", DifferenceWarning(*difference))?;
        }
        let with_pipelines: Vec<_> =
            self.sources.iter().filter(|source| source.pipeline != PipelineBalance::default()).collect();
        if !with_pipelines.is_empty() {
            writeln!(f, "items: received = accepted + filtered + sampled out, by the pipelines of sources")?;
        }
        for SourceBalance { name, pipeline, .. } in with_pipelines {
            let PipelineBalance { received, accepted, filtered, sampled_out, difference } = pipeline;
            let off = DifferenceWarning(*difference);
            writeln!(f, "  {name}: {received} = {accepted} + {filtered} + {sampled_out}{off}")?;
        }
        let JournalBalance { accepted, handed_over, appended, difference } = self.journal;
        writeln!(f, "items: accepted <= appended <= accepted + handed over, since start")?;
        writeln!(
            f,
            "  journal: {accepted} <= {appended} <= {accepted} + {handed_over}{}",
            DifferenceWarning(difference)
        )?;
        writeln!(f, "items: accepted = delivered + passed over + queued + dropped, since attached")?;
        for sink in &self.sinks {
            let SinkBalance { name, accepted, delivered, passed, queued, dropped, difference, .. } = sink;
            let dropped = sum(dropped.iter().map(|(reason, count)| (reason.name(), *count)));
            let off = DifferenceWarning(*difference);
            writeln!(f, "  {name}: {accepted} = {delivered} + {passed} + {queued} + {dropped}{off}")?;
        }
        match self.difference() {
            0 => writeln!(f, "the books close"),
            off => writeln!(f, "THE BOOKS DO NOT CLOSE: {off} unexplained; this is a bug, please report it"),
        }
    }
}

/// Says so when an equation does not hold.
struct DifferenceWarning(i64);

impl fmt::Display for DifferenceWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, "  DIFFERENCE {:+}", self.0) }
    }
}

/// `7 (memory 3, timeout 4)`
fn sum<'a>(parts: impl Iterator<Item = (&'a str, u64)> + Clone) -> String {
    let total: u64 = parts.clone().map(|(_, count)| count).sum();
    let parts: Vec<String> = parts.map(|(name, count)| format!("{name} {count}")).collect();
    if parts.is_empty() { total.to_string() } else { format!("{total} ({})", parts.join(", ")) }
}

fn source_json(source: &SourceBalance) -> String {
    let SourceBalance {
        name,
        received,
        accepted,
        refused,
        open,
        items,
        items_refused,
        bytes,
        forwarded,
        pipeline,
        difference,
    } = source;
    let fates = object(forwarded.fates.iter().map(|(fate, count)| (fate.name(), *count)));
    let (forwarded, forwarded_open) = (forwarded.received, forwarded.open);
    let refused = object(refused.iter().map(|(reason, count)| (reason.name(), *count)));
    let items_refused = object(items_refused.iter().map(|(reason, count)| (reason.name(), *count)));
    let items = object(items.iter().map(|(signal, count)| (signal.name(), *count)));
    // As in the text: few sources have one.
    let pipeline = if *pipeline == PipelineBalance::default() {
        String::new()
    } else {
        let PipelineBalance { received, accepted, filtered, sampled_out, difference } = pipeline;
        format!(
            "\"pipeline\":{{\"received\":{received},\"accepted\":{accepted},\"filtered\":{filtered},\
             \"sampled_out\":{sampled_out},\"difference\":{difference}}},"
        )
    };
    format!(
        "{{\"name\":{},\"received\":{received},\"accepted\":{accepted},\"refused\":{refused},\"open\":{open},\
         \"items\":{items},\"items_refused\":{items_refused},\"bytes\":{bytes},\
         \"forwarded\":{forwarded},\"forwarded_open\":{forwarded_open},\"forwarded_fates\":{fates},\
         {pipeline}\"difference\":{difference}}}",
        Quoted(name)
    )
}

fn sink_json(sink: &SinkBalance) -> String {
    let SinkBalance { name, accepted, replayed, delivered, passed, queued, dropped, difference } = sink;
    let dropped = object(dropped.iter().map(|(reason, count)| (reason.name(), *count)));
    format!(
        "{{\"name\":{},\"accepted\":{accepted},\"replayed\":{replayed},\"delivered\":{delivered},\
         \"passed\":{passed},\"queued\":{queued},\"dropped\":{dropped},\"difference\":{difference}}}",
        Quoted(name)
    )
}

fn list<T>(all: &[T], json: impl Fn(&T) -> String) -> String {
    all.iter().map(json).collect::<Vec<_>>().join(",")
}

fn object<'a>(entries: impl Iterator<Item = (&'a str, u64)>) -> String {
    let entries: Vec<String> = entries.map(|(name, count)| format!("\"{name}\":{count}")).collect();
    format!("{{{}}}", entries.join(","))
}

/// A JSON string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
