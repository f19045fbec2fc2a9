use super::*;
use crate::metadata::MetadataCache;
use crate::pool::Pool;
use crate::run::{HistogramBuffer, LogBuffer, PointBuffer, PointValue, RowKey, SpanBuffer};
use crate::tests::otlp::{Attr, log_record, span};
use tidegate_wire::otlp::{LogRecord, LogsRequest, Span, TracesRequest};
use tidegate_wire::remote_write::{Histogram, Label};

const GROUPS: u64 = 8;

fn label(serial: &str) -> [Label<'_>; 2] {
    let name = Label { name: b"__name__", value: serial.as_bytes() };
    [name, Label { name: b"serial", value: serial.as_bytes() }]
}

/// The size of a file after some row groups, and the size that it reports, in bytes.
fn measured<R: RowBuffer>(table: Table, mut run: R, fill: impl Fn(&mut R)) -> (u64, u64) {
    let dir = tempfile::tempdir().unwrap();
    let shape = BufferSizes::of(crate::buffer_sizes::SMALLEST).unwrap();
    let kind = TableSchema::new(table, &shape, &dir.path().join("spill"), Access::Owner).unwrap();
    let mut file = kind.create(dir.path().join("file")).unwrap();
    // Memory that the pool keeps for the next rows is not the file's.
    fill(&mut run);
    run.clear();
    let mut held = 0;
    for _ in 0..GROUPS {
        let measured = allocation_counter::measure(|| {
            fill(&mut run);
            file.write(&kind, &mut run).unwrap();
            run.clear();
        });
        held += measured.bytes_current.unsigned_abs();
    }
    let said = file.footer_bytes() as u64;
    let mut finished = None;
    let end = allocation_counter::measure(|| finished = Some(file.finish().unwrap()));
    let read = allocation_counter::measure(|| finished.unwrap().read_back().unwrap());
    println!(
        "{table}: {} held, {} said, {} to finish, {} to read back for each row group",
        held / GROUPS,
        said / GROUPS,
        end.bytes_max / GROUPS,
        read.bytes_max / GROUPS
    );
    (held, said)
}

/// Files are closed by what they say that their footers take, so it must not be less than what they do take.
#[test]
fn footers_are_not_longer_than_they_say() {
    let shape = BufferSizes::of(crate::buffer_sizes::SMALLEST).unwrap();
    let pool = Pool::new(shape.pool);
    let families = MetadataCache::new(1, 1000);
    let (held, said) = measured(Table::MetricPoints, PointBuffer::new(&shape, &pool), |run| {
        for serial in 0..shape.point_series {
            let serial = format!("{serial:0>100}");
            let Ok(series) = run.keys.series_of(label(&serial).into_iter(), &families) else { break };
            for time_us in 0..3 {
                let _ = run
                    .add(RowKey::new((time_us, 0), None, series, 0), PointValue::Double(u64::from(series)));
            }
        }
    });
    assert!(held <= said, "points: {held} held, {said} said");
    let (held, said) = measured(Table::MetricHistograms, HistogramBuffer::new(&shape, &pool), |run| {
        for serial in 0..shape.histogram_series {
            let serial = format!("{serial:0>100}");
            let Ok(series) = run.keys.series_of(label(&serial).into_iter(), &families) else { break };
            let _ = run.add(series, &Histogram::new(&[]).unwrap());
        }
    });
    assert!(held <= said, "histograms: {held} held, {said} said");
    let (held, said) = measured(Table::Spans, SpanBuffer::new(&pool), |run| {
        let batch = run.batch([1; 16]).unwrap();
        for serial in 0..10_000_u64 {
            let attributes = [
                ("http.route", Attr::Text("/some/long/route/of/a/request")),
                ("n", Attr::Int(serial as i64)),
            ];
            let raw =
                crate::tests::otlp::traces(&[], &[span(serial, &format!("{serial:0>70}"), &attributes)]);
            let item: Span<'_> = first(TracesRequest::new(&raw));
            if run.add(&item, 0, batch, &mut Vec::new()).is_err() {
                break;
            }
        }
    });
    assert!(held <= said, "spans: {held} held, {said} said");
    let (held, said) = measured(Table::Logs, LogBuffer::new(&pool), |run| {
        let batch = run.batch([1; 16]).unwrap();
        for serial in 0..10_000_u64 {
            let body = format!("{serial:0>70}");
            let raw = crate::tests::otlp::logs(
                &[],
                &[log_record(serial, Attr::Text(&body), &[("host.name", Attr::Text(&body))])],
            );
            let item: LogRecord<'_> = first(LogsRequest::new(&raw));
            if run.add(&item, 0, 0, batch, &mut Vec::new()).is_err() {
                break;
            }
        }
    });
    assert!(held <= said, "logs: {held} held, {said} said");
}

fn first<'a, T: tidegate_wire::otlp::Item<'a>>(request: tidegate_wire::otlp::Request<'a, T>) -> T {
    request.resources().next().unwrap().scopes().next().unwrap().items().next().unwrap()
}
