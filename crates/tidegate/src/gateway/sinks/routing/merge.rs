//! Makes room for another routing at the start, where waiting for a sink, as a reload does, is no choice.

use super::{QueueSpan, Routing, RoutingHistory};
use std::collections::BTreeMap;
use tidegate_pipeline::{Definition, Format, Pipeline, Signal, StepDefinition};

impl RoutingHistory {
    /// Routes the records of the two oldest periods alike, where there would be too many periods: each sink takes what it was to take in
    /// either of them, and perhaps more, so every item is taken. Whether it did so; the log says it.
    pub(crate) fn make_room(&mut self, sinks: &BTreeMap<String, Routing>, queue: &QueueSpan) -> bool {
        let mut is_merged = false;
        while self.check_room(sinks, queue).is_err() && self.periods.len() > 1 {
            let oldest = self.periods.remove(0);
            let Some(next) = self.periods.first_mut() else { break };
            next.from = oldest.from;
            for (name, before) in oldest.sinks {
                let either = next.sinks.get(&name).map_or_else(|| before.clone(), |after| before.or(after));
                next.sinks.insert(name, either);
            }
            is_merged = true;
        }
        if is_merged {
            tell_of_merged(sinks, queue);
        }
        is_merged
    }
}

fn tell_of_merged(sinks: &BTreeMap<String, Routing>, queue: &QueueSpan) {
    let sink = queue.oldest.as_ref().map_or("", |(_, name)| name);
    let help = match sinks.contains_key(sink) {
        true => String::new(),
        false => format!(
            "; `{sink}`, which has not read them, is not configured: run `tidegate journal forget {sink}` if it was removed for good"
        ),
    };
    tracing::warn!(
        sink,
        "`when` or `otherwise` of sinks changed too often since the oldest queued request was received: the oldest requests go to each \
         sink that was to take them before or after the first of these changes, so some may be delivered to several sinks{help}"
    );
}

impl Routing {
    /// Takes what this one or the other takes: exactly that where it can be said, otherwise more.
    fn or(&self, other: &Routing) -> Routing {
        if self == other {
            return self.clone();
        }
        let mut keep = self.keep.clone();
        keep.extend(other.keep.iter().filter(|text| !self.keep.contains(text)).cloned());
        let either = Routing { keep, drop: Vec::new() };
        // Conditions select only among the signals that they are about: those of one side must not select among what the other takes
        // completely.
        let selected = self.selected();
        let is_exact = selected.is_some() && selected == other.selected() && selected == either.selected();
        let keep = if is_exact { either.keep } else { Vec::new() };
        let drop = self.drop.iter().filter(|text| other.drop.contains(text)).cloned().collect();
        Routing { keep, drop }
    }

    /// The signals that its conditions to keep items select among: traces, metrics, logs. None without conditions, or where they
    /// do not compile.
    fn selected(&self) -> Option<[bool; 3]> {
        let keeps = Routing { keep: self.keep.clone(), drop: Vec::new() };
        let steps: Vec<StepDefinition> = keeps.steps();
        if steps.is_empty() {
            return None;
        }
        let (pipeline, _) = Pipeline::compile(&Definition { steps }).ok()?;
        let selects = |signal| pipeline.passes(Format::Otlp(signal)) > 0;
        Some([Signal::Traces, Signal::Metrics, Signal::Logs].map(selects))
    }
}

#[cfg(test)]
mod tests {
    use super::super::MOST;
    use super::*;

    fn keeping(texts: &[&str]) -> Routing {
        Routing { keep: texts.iter().map(|&text| text.to_owned()).collect(), drop: Vec::new() }
    }

    fn dropping(texts: &[&str]) -> Routing {
        Routing { keep: Vec::new(), drop: keeping(texts).keep }
    }

    /// A merged routing takes at least what either of the two does: no item is left to a sink that is past it.
    #[test]
    fn a_merged_routing_takes_what_either_takes() {
        let (warnings, errors) = ("log.severity_number >= 13", "log.severity_number >= 17");
        let cases = [
            (keeping(&[warnings]), keeping(&[warnings]), keeping(&[warnings])),
            (keeping(&[warnings]), keeping(&[errors, warnings]), keeping(&[warnings, errors])),
            // The first takes all spans, the second all log records.
            (keeping(&[warnings]), keeping(&["span.name == \"a\""]), Routing::default()),
            // They do not compile together: a resource and what is in it.
            (keeping(&["resource.attributes[\"a\"] == 1"]), keeping(&[errors]), Routing::default()),
            (keeping(&[warnings]), Routing::default(), Routing::default()),
            (keeping(&["of another version"]), keeping(&[warnings]), Routing::default()),
            (dropping(&[warnings, errors]), dropping(&[errors]), dropping(&[errors])),
            (dropping(&[warnings]), keeping(&[warnings]), Routing::default()),
        ];
        for (one, other, either) in cases {
            assert_eq!(one.or(&other), either, "{one:?} {other:?}");
        }
    }

    /// Only the two oldest periods become one, which has all records of both.
    #[test]
    fn the_oldest_periods_make_room() {
        let of = |severity: usize| {
            BTreeMap::from([
                ("a".to_owned(), keeping(&[&format!("log.severity_number >= {severity}")])),
                (format!("only_in_{severity}"), keeping(&["log.body == 1"])),
            ])
        };
        let queue = |head| QueueSpan { head, oldest: Some((0, "gone".to_owned())) };
        let mut history = RoutingHistory::default();
        for period in 0..MOST {
            assert!(!history.make_room(&of(period), &queue(10 * period as u64)));
            history.begin(&of(period), &queue(10 * period as u64));
        }
        let next = of(MOST);
        assert!(history.make_room(&next, &queue(90)));
        history.begin(&next, &queue(90));
        assert_eq!(history.periods.len(), MOST);
        let (number, oldest) = history.earlier(&next, "a").next().unwrap();
        let either = ["log.severity_number >= 0", "log.severity_number >= 1"];
        assert_eq!((oldest, history.bounds(number)), (keeping(&either).steps(), Some((0, 20))));
        let first = history.periods.first().unwrap();
        for name in ["only_in_0", "only_in_1"] {
            assert_eq!(first.sinks.get(name), Some(&keeping(&["log.body == 1"])));
        }
    }
}
