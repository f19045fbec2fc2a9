//! Checking `prometheus.WriteRequest`.

use super::labels::{Order, check_text};
use super::{Counts, Limits, histogram, sample};
use crate::proto::Reader;
use crate::remote_write::Version;
use crate::remote_write::fault::{Excerpt, Fault, Reason, Subject};
use crate::remote_write::item::Label;
use crate::remote_write::v1::{LABELS_TAG, field, plain_label};
use crate::remote_write::v2;
use crate::utf8::is_utf8;

/// Checks a whole body.
pub(in crate::remote_write) fn check(raw: &[u8], limits: &Limits) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    let mut other_version = false;
    let mut request = Reader::new(raw);
    while let Some(key) = request.key()? {
        match key.field {
            field::TIMESERIES => {
                let message = request.message(key)?;
                series(message, limits, &mut counts).map_err(|fault| fault.in_series(counts.series))?;
                counts.series += 1;
            }
            field::METADATA => {
                metadata(request.message(key)?)?;
                counts.metadata += 1;
            }
            _ => {
                other_version |= key.field == v2::field::TIMESERIES;
                request.skip(key)?;
            }
        }
    }
    if other_version && counts == Counts::default() {
        let (found, announced) = (Version::V2.message(), Version::V1.message());
        return Err(Fault::new(0, Reason::OtherVersion { found, announced }));
    }
    Ok(counts)
}

fn series(mut message: Reader<'_>, limits: &Limits, counts: &mut Counts) -> Result<(), Fault> {
    let start = message;
    let mut order = Order::new(limits);
    loop {
        let run = message;
        while let Some((label, tail)) = take_plain_label(&mut message) {
            order.push(label, tail, message.offset())?;
        }
        check_run(run, message)?;
        let Some(key) = message.key()? else { break };
        match key.field {
            field::LABELS => {
                let label = label(message.message(key)?, LABEL)?;
                order.push(label, label.name, message.offset())?;
            }
            field::SAMPLES => {
                sample::check(message.message(key)?, false)?;
                counts.samples += 1;
            }
            field::EXEMPLARS => {
                exemplar(message.message(key)?)?;
                counts.exemplars += 1;
            }
            field::HISTOGRAMS => {
                histogram::check(message.message(key)?, false)?;
                counts.histograms += 1;
            }
            _ => message.skip(key)?,
        }
    }
    order.finish(start.offset())
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
fn check_run(run: Reader<'_>, end: Reader<'_>) -> Result<(), Fault> {
    if is_utf8(run.until(&end)) { Ok(()) } else { check_each(run, end.offset()) }
}

#[cold]
fn check_each(mut run: Reader<'_>, end: usize) -> Result<(), Fault> {
    while run.offset() < end {
        let Some(key) = run.key()? else { break };
        label(run.message(key)?, LABEL)?;
    }
    Ok(())
}

/// What the name and the value of a label are called in a fault.
type Subjects = [Subject; 2];
const LABEL: Subjects = [Subject::LabelName, Subject::LabelValue];
const EXEMPLAR_LABEL: Subjects = [Subject::ExemplarLabel; 2];

/// Reads any label and checks its texts, those too that a later occurrence of the same field supersedes:
/// other decoders look at them.
#[inline(never)]
fn label(mut message: Reader<'_>, [of_name, of_value]: Subjects) -> Result<Label<'_>, Fault> {
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

fn text(subject: Subject, text: Reader<'_>) -> Result<&[u8], Fault> {
    check_text(subject, text.rest(), text.offset())?;
    Ok(text.rest())
}

#[inline(never)]
fn exemplar(mut message: Reader<'_>) -> Result<(), Fault> {
    while let Some(key) = message.key()? {
        match key.field {
            field::LABELS => {
                let message = message.message(key)?;
                if let Label { name: [], value } = label(message, EXEMPLAR_LABEL)? {
                    let value = Excerpt::new(value);
                    return Err(Fault::new(message.offset(), Reason::EmptyName { value }));
                }
            }
            2 => drop(message.fixed64(key)?),
            3 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

fn metadata(mut message: Reader<'_>) -> Result<(), Fault> {
    while let Some(key) = message.key()? {
        match key.field {
            1 => drop(message.varint(key)?),
            2 | 4 | 5 => {
                text(Subject::Metadata, message.message(key)?)?;
            }
            _ => message.skip(key)?,
        }
    }
    Ok(())
}
