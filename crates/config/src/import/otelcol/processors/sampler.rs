//! The probabilistic sampler.

use super::Processed;
use crate::import::document::Map;
use crate::import::group::{FileReader, Group};
use crate::import::steps::{Step, StepKind};
use crate::model::Signal;

/// The step of a sampler, for traces and logs.
pub(super) fn convert(name: &str, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Processed {
    let mut processed = Processed::default();
    let percentage = group.text("sampling_percentage", reader);
    let mut sample = Map::default();
    match &percentage {
        Some(text) if text.is_open() => {
            let message = "`ratio` is a share from 0 to 1, not a percentage: change the value";
            reader.note(&text.at, &group.path_of("sampling_percentage"), message);
            sample.set("ratio", text.value.as_str());
        }
        Some(text) => match text.value.parse::<f64>() {
            Ok(percentage) if percentage >= 0.0 => sample.set("ratio", ratio(percentage)),
            _ => reader.error(&text.at, "this is not a percentage", "write a number from 0 to 100"),
        },
        None => sample.set("ratio", "0"),
    }
    let seed = group.number("hash_seed", reader);
    let mode = group.text("mode", reader).map(|text| text.value).filter(|mode| !mode.is_empty());
    let precision = group.number("sampling_precision", reader);
    // The Collector drops them unless it is told not to.
    let closed = group.flag("fail_closed", reader) != Some(false);
    sample.set_some("mode", mode);
    sample.set_some("seed", seed.map(|seed| seed.to_string()));
    sample.set_some("precision", precision.map(|digits| digits.to_string()));
    sample.set_some("drop_unknown", closed.then_some("true"));
    // The rest is about log records alone.
    let mut logs = sample.clone();
    let is_record = group.text("attribute_source", reader).is_some_and(|source| source.value == "record");
    if let Some(attribute) = group.text("from_attribute", reader) {
        logs.set(if is_record { "by" } else { "fallback" }, attribute.value);
    }
    logs.set_some("priority", group.text("sampling_priority", reader).map(|attribute| attribute.value));
    processed.push(Signal::Traces, Step::new(name, StepKind::Sample(sample)));
    processed.push(Signal::Logs, Step::new(name, StepKind::Sample(logs)));
    processed
}

/// A percentage as a share, without the noise of binary fractions.
fn ratio(percentage: f64) -> String {
    let share = format!("{:.9}", percentage.min(100.0) / 100.0);
    let share = share.trim_end_matches('0').trim_end_matches('.');
    share.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_shares() {
        for (percentage, share) in [(15.3, "0.153"), (100.0, "1"), (250.0, "1"), (0.0, "0"), (0.01, "0.0001")]
        {
            assert_eq!(ratio(percentage), share);
        }
    }
}
