//! Which routing applies to which queued records: that of the time when they were received.
//!
//! A sink takes what its `when` says, and leaves the rest to others. When that changes while sinks are at different places of the
//! queue, an item that one sink has left to another must still be taken by that other, and one that is taken must not be
//! taken again. So a record is routed by the conditions that applied when it was journalled: each sink keeps its earlier ones until it is
//! past the last record of their time.
//!
//! The conditions are stored beside the journal with the first record of each time, so that a restart knows them.

use crate::Failure;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;
use tidegate_files::Access;
use tidegate_pipeline::{ErrorMode, StepDefinition, StepKind};

/// The file, in the data folder.
const FILE: &str = "routing";
/// Its version.
const VERSION: u64 = 1;
/// The bound on reading it, in bytes: conditions are part of a configuration, which is smaller.
const LONGEST: u64 = 16 << 20;
/// The most times of which records may be queued: each needs pipelines of its own.
const MOST: usize = 4;

/// The conditions by which a sink takes items: as steps at the begin of its pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Routing {
    keep: Vec<String>,
    drop: Vec<String>,
}

/// A time in which the routing was the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Period {
    number: u64,
    /// The sequence of its first record.
    from: u64,
    /// The routing of each sink.
    sinks: BTreeMap<String, Routing>,
}

/// The routing of all times of which records are queued.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RoutingHistory {
    /// Oldest first; the last is the current one.
    periods: Vec<Period>,
}

impl Routing {
    /// That of the first steps of a pipeline.
    pub(crate) fn of(steps: &[StepDefinition]) -> Routing {
        let mut routing = Routing::default();
        for step in steps {
            match &step.kind {
                StepKind::Keep(texts) => routing.keep.extend_from_slice(texts),
                StepKind::Drop(texts) => routing.drop.extend_from_slice(texts),
                _ => {}
            }
        }
        routing
    }

    /// Its steps.
    pub(crate) fn steps(&self) -> Vec<StepDefinition> {
        let step = |kind| StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
        let keep = (!self.keep.is_empty()).then(|| step(StepKind::Keep(self.keep.clone())));
        let drop = (!self.drop.is_empty()).then(|| step(StepKind::Drop(self.drop.clone())));
        keep.into_iter().chain(drop).collect()
    }
}

impl RoutingHistory {
    /// That of the journal in the data folder; empty where nothing is stored.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(data: &Path) -> Result<RoutingHistory, Failure> {
        let file = data.join(FILE);
        let mut text = String::new();
        #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
        let read = tidegate_files::read(&file).and_then(|it| it.take(LONGEST).read_to_string(&mut text));
        match read {
            Ok(_) => parsed(&text).ok_or_else(|| {
                Failure(format!(
                    "{} was not written by this version of tidegate: was the data folder used by a newer one? If nothing is queued in the journal, you may remove the file",
                    file.display()
                ))
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(RoutingHistory::default()),
            Err(error) => Err(Failure(format!("reading {} (`data`): {error}", file.display()))),
        }
    }

    /// Stores it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn store(&self, data: &Path) -> Result<(), Failure> {
        let (file, temporary) = (data.join(FILE), data.join(format!("{FILE}.new")));
        let written = tidegate_files::open(&temporary, Access::Owner, |options| {
            options.write(true).create(true).truncate(true)
        })
        .and_then(|mut new| {
            new.write_all(written(self).to_string().as_bytes())?;
            new.sync_all()
        })
        .and_then(|()| std::fs::rename(&temporary, &file))
        .and_then(|()| File::open(data)?.sync_all());
        written.map_err(|error| Failure(format!("writing {} (`data`): {error}", file.display())))
    }

    /// Whether records are routed by `sinks` now.
    pub(crate) fn is_current(&self, sinks: &BTreeMap<String, Routing>) -> bool {
        // A sink that is new, or gone, changes the routing of the others or nothing.
        let last = self.periods.last();
        last.is_some_and(|last| {
            sinks.iter().all(|(name, routing)| last.sinks.get(name).is_none_or(|it| it == routing))
        })
    }

    /// Routes the records from `head` on by `sinks`. The records from `low` on are queued, if any are.
    pub(crate) fn begin(&mut self, sinks: &BTreeMap<String, Routing>, head: u64, low: Option<u64>) {
        self.forget(low);
        if self.is_current(sinks) {
            let missing = sinks.iter().map(|(name, routing)| (name.clone(), routing.clone()));
            if let Some(last) = self.periods.last_mut() {
                missing.for_each(|(name, routing)| {
                    last.sinks.entry(name).or_insert(routing);
                });
            }
            return;
        }
        let last = self.periods.last();
        // What was queued before routing was stored is routed as now.
        let (number, from) = last.map_or((0, 0), |last| (last.number + 1, head));
        self.periods.push(Period { number, from, sinks: sinks.clone() });
        self.forget(low);
    }

    /// Whether another routing can begin.
    ///
    /// # Errors
    /// When records of too many times are queued.
    pub(crate) fn check_room(
        &self,
        sinks: &BTreeMap<String, Routing>,
        low: Option<u64>,
    ) -> Result<(), Failure> {
        let mut queued = self.clone();
        queued.forget(low);
        if queued.is_current(sinks) || queued.periods.len() < MOST {
            return Ok(());
        }
        Err(Failure(format!(
            "`when` or `otherwise` of sinks changed {} times since the oldest queued request was received, and requests are routed as \
             they were then: change it again when that one is delivered (`/status` shows what is queued)",
            MOST - 1
        )))
    }

    /// Forgets the times of which no record is queued.
    fn forget(&mut self, low: Option<u64>) {
        let low = low.unwrap_or(u64::MAX);
        let ends: Vec<u64> = self.periods.iter().skip(1).map(|period| period.from).collect();
        let passed = ends.iter().take_while(|end| **end <= low).count();
        self.periods.drain(..passed);
    }

    /// The routing of a sink in the times before the one in which it is `now`, with their numbers.
    pub(crate) fn earlier<'a>(
        &'a self,
        sinks: &BTreeMap<String, Routing>,
        name: &'a str,
    ) -> impl Iterator<Item = (u64, &'a Routing)> {
        let current =
            if self.is_current(sinks) { self.periods.len().saturating_sub(1) } else { self.periods.len() };
        let before = self.periods.iter().take(current);
        before.filter_map(move |period| Some((period.number, period.sinks.get(name)?)))
    }

    /// The sequences of the first record of a time, and of the first behind it; `None` for the current one, or one that is forgotten.
    pub(crate) fn bounds(&self, number: u64) -> Option<(u64, u64)> {
        let at = self.periods.iter().position(|period| period.number == number)?;
        Some((self.periods.get(at)?.from, self.periods.get(at + 1)?.from))
    }
}

fn written(history: &RoutingHistory) -> Value {
    let routing = |(name, routing): (&String, &Routing)| {
        (name.clone(), json!({"keep": routing.keep, "drop": routing.drop}))
    };
    let period = |period: &Period| {
        let sinks: Map<String, Value> = period.sinks.iter().map(routing).collect();
        json!({"number": period.number, "from": period.from, "sinks": sinks})
    };
    json!({"version": VERSION, "periods": history.periods.iter().map(period).collect::<Vec<_>>()})
}

fn parsed(text: &str) -> Option<RoutingHistory> {
    let value: Value = serde_json::from_str(text).ok()?;
    if value.get("version")?.as_u64()? != VERSION {
        return None;
    }
    let texts = |value: &Value| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect()
    };
    let period = |value: &Value| {
        let sinks = value.get("sinks")?.as_object()?.iter().map(|(name, routing)| {
            let (keep, drop) = (texts(routing.get("keep")?)?, texts(routing.get("drop")?)?);
            Some((name.clone(), Routing { keep, drop }))
        });
        Some(Period {
            number: value.get("number")?.as_u64()?,
            from: value.get("from")?.as_u64()?,
            sinks: sinks.collect::<Option<_>>()?,
        })
    };
    let periods = value.get("periods")?.as_array()?.iter().map(period).collect::<Option<_>>()?;
    Some(RoutingHistory { periods })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sinks(conditions: &[(&str, &str)]) -> BTreeMap<String, Routing> {
        let routing = |text: &str| Routing { keep: vec![text.to_owned()], drop: Vec::new() };
        conditions.iter().map(|(name, text)| ((*name).to_owned(), routing(text))).collect()
    }

    fn earlier(
        history: &RoutingHistory,
        now: &BTreeMap<String, Routing>,
        name: &str,
    ) -> Vec<(String, Option<(u64, u64)>)> {
        let earlier = history.earlier(now, name);
        earlier.map(|(number, it)| (it.keep.concat(), history.bounds(number))).collect()
    }

    /// A record is routed by the conditions of its time, until no record of that is queued; also after a restart.
    #[test]
    fn each_record_has_the_routing_of_its_time() {
        let (first, second, third) = (
            sinks(&[("a", "1"), ("b", "1")]),
            sinks(&[("a", "2"), ("b", "1")]),
            sinks(&[("a", "3"), ("b", "1")]),
        );
        let mut history = RoutingHistory::default();
        history.begin(&first, 10, Some(5));
        assert_eq!(earlier(&history, &first, "a"), []);
        history.begin(&second, 20, Some(5));
        // As it is planned, before the place is known.
        assert_eq!(earlier(&history, &third, "a"), [("1".to_owned(), Some((0, 20))), ("2".to_owned(), None)]);
        history.begin(&third, 30, Some(5));
        assert_eq!(
            earlier(&history, &third, "a"),
            [("1".to_owned(), Some((0, 20))), ("2".to_owned(), Some((20, 30)))]
        );
        assert_eq!(parsed(&written(&history).to_string()), Some(history.clone()));
        history.begin(&third, 40, Some(20));
        assert_eq!(earlier(&history, &third, "a"), [("2".to_owned(), Some((20, 30)))]);
        history.begin(&third, 40, None);
        assert_eq!(earlier(&history, &third, "a"), []);
    }

    /// A sink that is new has one routing for all; and the number of times is bounded.
    #[test]
    fn a_routing_may_change_a_few_times_while_records_are_queued() {
        let mut history = RoutingHistory::default();
        history.begin(&sinks(&[("a", "0")]), 0, Some(0));
        history.begin(&sinks(&[("a", "0"), ("new", "7")]), 5, Some(0));
        assert_eq!(history.periods.len(), 1);
        for time in 1..MOST as u64 {
            let now = sinks(&[("a", &time.to_string())]);
            history.check_room(&now, Some(0)).unwrap_or_else(|_| panic!("{time}"));
            history.begin(&now, 10 * time, Some(0));
        }
        let next = sinks(&[("a", "next")]);
        assert!(history.check_room(&next, Some(9)).is_err());
        assert!(history.check_room(&next, Some(10)).is_ok());
        assert!(history.check_room(&sinks(&[("a", "3")]), Some(0)).is_ok(), "it is as it was");
    }
}
