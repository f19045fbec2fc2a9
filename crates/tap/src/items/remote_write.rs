//! Items of Remote-Write: samples and native histograms of each series, and what is said of families in 1.0.

use super::{Items, RemainingItems, enough};
use crate::line::Line;
use crate::record_reader::SYMBOLS;
use tidegate_wire::remote_write::{Count, Request, Series, Symbols, Version, view};

pub(super) fn walk(items: &mut Items<'_>, version: Version, raw: &[u8]) -> RemainingItems {
    if version == Version::V2 && Symbols::bytes_for(raw) > SYMBOLS {
        return RemainingItems::all("the request has more than 65,536 symbols");
    }
    let mut symbols = Symbols::new();
    let Ok(request) = view(version, raw, &mut symbols) else {
        return RemainingItems::all("the body is damaged");
    };
    enough(
        request
            .series()
            .try_for_each(|series| self::series(items, &series))
            .and_then(|()| families(items, &request)),
    )
}

fn series(items: &mut Items<'_>, series: &Series<'_>) -> Option<()> {
    let name = series.label(b"__name__").unwrap_or_default();
    // OpenTelemetry's service is a job here; a namespace may precede it.
    let job = series.label(b"job").unwrap_or_default();
    let service = job.iter().rposition(|byte| *byte == b'/').and_then(|at| job.get(at + 1..)).unwrap_or(job);
    for sample in series.samples() {
        items.item(service, name, |line| {
            begin(line, name, sample.timestamp);
            line.double("value", sample.bits);
            if sample.is_stale() {
                line.plain("stale", true);
            }
            labels(line, series);
        })?;
    }
    for histogram in series.histograms() {
        items.item(service, name, |line| {
            begin(line, name, histogram.timestamp);
            line.text("type", b"histogram");
            match histogram.count {
                Some(Count::Int(count)) => line.plain("count", count),
                Some(Count::Float(bits)) => line.double("count", bits),
                None => {}
            }
            line.double("sum", histogram.sum_bits);
            line.plain("schema", histogram.schema);
            labels(line, series);
        })?;
    }
    Some(())
}

/// In 2.0 every series says it; it would be shown again and again.
fn families(items: &mut Items<'_>, request: &Request<'_>) -> Option<()> {
    if !matches!(request, Request::V1(_)) {
        return Some(());
    }
    request.metadata().try_for_each(|family| {
        items.item(&[], family.family, |line| {
            line.text("family", family.family);
            line.text("help", family.help);
            line.text("unit", family.unit);
        })
    })
}

fn begin(line: &mut Line, name: &[u8], timestamp_ms: i64) {
    line.time("time", u64::try_from(timestamp_ms).unwrap_or(0).saturating_mul(1_000_000));
    line.text("name", name);
}

fn labels(line: &mut Line, series: &Series<'_>) {
    let others = series.labels().filter(|label| label.name != b"__name__");
    line.texts("labels", others.map(|label| (label.name, label.value)));
}
