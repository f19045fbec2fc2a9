//! Checking `prometheus.WriteRequest`.

use super::labels::{Entry, LabelOrder, check_text};
use super::plain::plain_labels;
use super::{CheckedSeries, Counts, InspectionReport, Limits, SeriesVerdict, histogram, sample};
use crate::proto::{Malformed, Reader};
use crate::remote_write::Version;
use crate::remote_write::error::{ErrorSubject, Excerpt, RemoteWriteError, RemoteWriteErrorKind};
use crate::remote_write::item::Label;
use crate::remote_write::v1::{LABELS_TAG, SAMPLES_TAG, Series, field, plain_label};
use crate::remote_write::v2;
use crate::utf8::is_utf8;

/// Looks at a whole body.
pub(in crate::remote_write) fn inspect(
    raw: &[u8],
    limits: &Limits,
) -> Result<InspectionReport, RemoteWriteError> {
    let mut walk = SeriesReaderV1::new(raw, limits);
    let mut other_version = false;
    let mut request = Reader::new(raw);
    while let Some(key) = request.key()? {
        match key.field {
            field::TIMESERIES => drop(walk.series(request.message(key)?)?),
            field::METADATA => drop(walk.metadata(request.message(key)?)?),
            _ => {
                other_version |= key.field == v2::field::TIMESERIES;
                request.skip(key)?;
            }
        }
    }
    let inspected = walk.inspected;
    if other_version && walk.number == 0 && inspected == InspectionReport::default() {
        let (found, announced) = (Version::V2.message(), Version::V1.message());
        return Err(RemoteWriteError::new(0, RemoteWriteErrorKind::OtherVersion { found, announced }));
    }
    Ok(inspected)
}

/// A walk through a body, from series to series.
pub(in crate::remote_write) struct SeriesReaderV1<'a, 'l> {
    raw: &'a [u8],
    limits: &'l Limits,
    inspected: InspectionReport,
    /// The number of the next series.
    number: u64,
    /// The labels of the last series, sorted, if they were not.
    pub(in crate::remote_write) sorted: Vec<Entry<'a>>,
}

impl<'a, 'l> SeriesReaderV1<'a, 'l> {
    pub(in crate::remote_write) fn new(raw: &'a [u8], limits: &'l Limits) -> Self {
        Self { raw, limits, inspected: InspectionReport::default(), number: 0, sorted: Vec::new() }
    }

    /// The verdict on the next series.
    #[inline(always)]
    pub(in crate::remote_write) fn series(
        &mut self,
        message: Reader<'a>,
    ) -> Result<SeriesVerdict, RemoteWriteError> {
        match usual(self.raw, message, self.limits) {
            Some(samples) => {
                self.number += 1;
                self.inspected.enter_usual(samples, message.rest().len());
                Ok(SeriesVerdict::Keep)
            }
            None => self.unusual(message),
        }
    }

    #[inline(never)]
    fn unusual(&mut self, message: Reader<'a>) -> Result<SeriesVerdict, RemoteWriteError> {
        let found = series(message, self.limits, &mut self.sorted);
        let number = self.number;
        self.number += 1;
        self.inspected.enter(number, found, || Ok(items_of(message)?))
    }

    /// The verdict on a metadata entry.
    pub(in crate::remote_write) fn metadata(
        &mut self,
        message: Reader<'_>,
    ) -> Result<SeriesVerdict, RemoteWriteError> {
        match metadata(message) {
            Ok(()) => {
                self.inspected.counts.metadata += 1;
                self.inspected.largest_item = self.inspected.largest_item.max(message.rest().len());
                Ok(SeriesVerdict::Keep)
            }
            Err(error) if error.is_of_body() => Err(error),
            Err(error) => {
                self.inspected.rejected.record(error, &Counts { metadata: 1, ..Counts::default() });
                Ok(SeriesVerdict::Drop)
            }
        }
    }
}

/// All items of a series that is refused.
#[cold]
fn items_of(mut message: Reader<'_>) -> Result<Counts, Malformed> {
    let mut counts = Counts::default();
    while let Some(key) = message.key()? {
        match key.field {
            field::SAMPLES => counts.samples += 1,
            field::EXEMPLARS => counts.exemplars += 1,
            field::HISTOGRAMS => counts.histograms += 1,
            _ => {}
        }
        message.skip(key)?;
    }
    Ok(counts)
}

/// How many samples a series has that is as nearly all are: plain labels, then samples alone. One that is not is looked at
/// again, for all that may be there and all that may be wrong.
#[inline(always)]
fn usual(raw: &[u8], message: Reader<'_>, limits: &Limits) -> Option<u64> {
    let labels = plain_labels(raw.get(message.offset()..)?, limits)?;
    let mut rest = message.rest().get(labels..)?;
    let mut samples = 0;
    while let Some((&[tag, len], behind)) = rest.split_first_chunk() {
        let (sample, behind) = behind.split_at_checked(usize::from(len))?;
        if tag != SAMPLES_TAG || !sample::has_common_layout(sample) {
            return None;
        }
        samples += 1;
        rest = behind;
    }
    rest.is_empty().then_some(samples)
}

fn series<'a>(
    mut message: Reader<'a>,
    limits: &Limits,
    sorted: &mut Vec<Entry<'a>>,
) -> Result<CheckedSeries, RemoteWriteError> {
    let start = message;
    let mut order = LabelOrder::new(limits);
    let mut found = CheckedSeries { bytes: start.rest().len(), ..CheckedSeries::default() };
    loop {
        let run = message;
        while let Some((label, tail)) = take_plain_label(&mut message) {
            order.push(label, tail, message.offset())?;
        }
        check_run(run, message)?;
        if found.counts.values() > 0 && run.offset() < message.offset() {
            order.note_unsorted(message.offset());
        }
        let Some(key) = message.key()? else { break };
        match key.field {
            field::LABELS => {
                let label = label(message.message(key)?, LABEL)?;
                order.push(label, label.name, message.offset())?;
                if found.counts.values() > 0 {
                    order.note_unsorted(message.offset());
                }
            }
            field::SAMPLES => {
                sample::check(message.message(key)?, false)?;
                found.counts.samples += 1;
            }
            field::EXEMPLARS => match exemplar(message.message(key)?) {
                Ok(()) => found.counts.exemplars += 1,
                Err(error) => found.malformed.note(error, |malformed| &mut malformed.exemplars)?,
            },
            field::HISTOGRAMS => match histogram::check(message.message(key)?, false) {
                Ok(()) => found.counts.histograms += 1,
                Err(error) => found.malformed.note(error, |malformed| &mut malformed.histograms)?,
            },
            _ => message.skip(key)?,
        }
    }
    found.counts.series = 1;
    if let Some(unsorted) = order.finish(start.offset())? {
        found.unsorted = Some(unsorted.sorted(entries_of(start.rest()), sorted)?);
    }
    Ok(found)
}

/// The labels of a series, to be sorted.
fn entries_of<'a>(series: &'a [u8]) -> impl Iterator<Item = Entry<'a>> {
    Series::new(series).labels().map(|label| Entry { label, references: [0; 2] })
}

/// Whether a histogram or an exemplar of a series, which was found well-formed, is accepted.
pub(in crate::remote_write) fn is_accepted(number: u32, message: Reader<'_>) -> bool {
    match number {
        field::EXEMPLARS => exemplar(message).is_ok(),
        field::HISTOGRAMS => histogram::check(message, false).is_ok(),
        _ => true,
    }
}

/// The next field and its name's tail, if it is a label as every known sender encodes it; the cursor moves
/// only then.
#[inline(always)]
fn take_plain_label<'a>(message: &mut Reader<'a>) -> Option<(Label<'a>, &'a [u8])> {
    let mut ahead = *message;
    let label = plain_label(ahead.take_short(LABELS_TAG)?)?;
    *message = ahead;
    Some(label)
}

/// That the texts of the plain labels from `run` up to `end` are UTF-8.
#[inline]
fn check_run(run: Reader<'_>, end: Reader<'_>) -> Result<(), RemoteWriteError> {
    if is_utf8(run.until(&end)) { Ok(()) } else { check_each(run, end.offset()) }
}

#[cold]
fn check_each(mut run: Reader<'_>, end: usize) -> Result<(), RemoteWriteError> {
    while run.offset() < end {
        let Some(key) = run.key()? else { break };
        label(run.message(key)?, LABEL)?;
    }
    Ok(())
}

/// The names of a label's name and value in an error.
type Subjects = [ErrorSubject; 2];
const LABEL: Subjects = [ErrorSubject::LabelName, ErrorSubject::LabelValue];
const EXEMPLAR_LABEL: Subjects = [ErrorSubject::ExemplarLabel; 2];

/// Reads any label and checks its texts, those too that a later occurrence of the same field supersedes:
/// other decoders look at them.
#[inline(never)]
fn label(mut message: Reader<'_>, [of_name, of_value]: Subjects) -> Result<Label<'_>, RemoteWriteError> {
    let mut label = Label { name: &[], value: &[] };
    while let Some(key) = message.key()? {
        match key.field {
            1 => label.name = text(of_name, message.message(key)?)?,
            2 => label.value = text(of_value, message.message(key)?)?,
            _ => message.skip(key)?,
        }
    }
    Ok(label)
}

fn text(subject: ErrorSubject, text: Reader<'_>) -> Result<&[u8], RemoteWriteError> {
    check_text(subject, text.rest(), text.offset())?;
    Ok(text.rest())
}

#[inline(never)]
fn exemplar(mut message: Reader<'_>) -> Result<(), RemoteWriteError> {
    while let Some(key) = message.key()? {
        match key.field {
            field::LABELS => {
                let message = message.message(key)?;
                if let Label { name: [], value } = label(message, EXEMPLAR_LABEL)? {
                    let value = Excerpt::new(value);
                    return Err(RemoteWriteError::new(
                        message.offset(),
                        RemoteWriteErrorKind::EmptyName { value },
                    ));
                }
            }
            2 => drop(message.fixed64(key)?),
            3 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

fn metadata(mut message: Reader<'_>) -> Result<(), RemoteWriteError> {
    while let Some(key) = message.key()? {
        match key.field {
            1 => drop(message.varint(key)?),
            2 | 4 | 5 => {
                text(ErrorSubject::Metadata, message.message(key)?)?;
            }
            _ => message.skip(key)?,
        }
    }
    Ok(())
}
