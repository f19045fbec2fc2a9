//! Which routing applies to which queued records: that of the period in which they were received.
//!
//! A sink takes what its `when` says, and leaves the rest to others. When that changes while sinks are at different places of the
//! queue, an item that one sink has left to another must still be taken by that other, and one that is taken must not be
//! taken again. So a record is routed by the conditions that applied when it was journalled: each sink keeps its earlier ones until it is
//! past the last record of their period.
//!
//! The conditions are stored beside the journal with the first record of each period, so that a restart knows them.

mod file;
mod merge;

use crate::Failure;
use std::collections::BTreeMap;
use tidegate_pipeline::{ErrorMode, StepDefinition, StepKind};

/// The most periods of which records may be queued: each needs pipelines of its own.
const MOST: usize = 4;

/// The conditions by which a sink takes items: as steps at the begin of its pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Routing {
    keep: Vec<String>,
    drop: Vec<String>,
}

/// The records between two changes of the routing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Period {
    number: u64,
    /// The sequence of its first record.
    from: u64,
    /// The routing of each sink.
    sinks: BTreeMap<String, Routing>,
}

/// The records that some sink may still have to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QueueSpan {
    /// The sequence of the next record of the journal.
    pub(crate) head: u64,
    /// The cursor that is furthest behind: its sequence, and the sink's name. None where the journal has no cursor.
    pub(crate) oldest: Option<(u64, String)>,
}

/// The routing of all periods of which records are queued.
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

    /// Steps that leave all items that these conditions are about, whether they meet them or not. None if there are no conditions.
    pub(crate) fn leaving_all(&self) -> Vec<StepDefinition> {
        let conditions = self.keep.iter().chain(&self.drop);
        let texts: Vec<String> =
            conditions.flat_map(|text| [text.clone(), format!("not ({text})")]).collect();
        // A condition that fails on an item leaves that too.
        let step =
            || StepDefinition { when: None, on_error: ErrorMode::Drop, kind: StepKind::Drop(texts.clone()) };
        (!texts.is_empty()).then(step).into_iter().collect()
    }
}

impl RoutingHistory {
    /// Whether records are routed by `sinks` now.
    pub(crate) fn is_current(&self, sinks: &BTreeMap<String, Routing>) -> bool {
        // A sink that is new, or gone, changes the routing of the others or nothing.
        let last = self.periods.last();
        last.is_some_and(|last| {
            sinks.iter().all(|(name, routing)| last.sinks.get(name).is_none_or(|it| it == routing))
        })
    }

    /// Routes the records from the head of `queue` on by `sinks`.
    pub(crate) fn begin(&mut self, sinks: &BTreeMap<String, Routing>, queue: &QueueSpan) {
        let number = self.periods.last().map_or(0, |last| last.number + 1);
        self.forget(queue);
        if self.is_current(sinks) {
            let missing = sinks.iter().map(|(name, routing)| (name.clone(), routing.clone()));
            if let Some(last) = self.periods.last_mut() {
                missing.for_each(|(name, routing)| {
                    last.sinks.entry(name).or_insert(routing);
                });
            }
            return;
        }
        // Records queued before routing was stored are routed as now.
        let from = if self.periods.is_empty() { 0 } else { queue.head };
        self.periods.push(Period { number, from, sinks: sinks.clone() });
        self.forget_completed(queue);
    }

    /// Whether another routing can begin.
    ///
    /// # Errors
    /// When records of too many periods are queued.
    pub(crate) fn check_room(
        &self,
        sinks: &BTreeMap<String, Routing>,
        queue: &QueueSpan,
    ) -> Result<(), Failure> {
        let mut queued = self.clone();
        queued.forget(queue);
        if queued.is_current(sinks) || queued.periods.len() < MOST {
            return Ok(());
        }
        let wait = match &queue.oldest {
            Some((_, name)) if !sinks.contains_key(name) => format!(
                "`{name}`, which has not read it, is not configured: configure that sink again, or run `tidegate journal forget {name}` \
                 if it was removed for good"
            ),
            Some((_, name)) => format!(
                "change it again when the sink `{name}` has delivered that one (`/status` shows what is queued)"
            ),
            None => "change it again when that one is delivered (`/status` shows what is queued)".to_owned(),
        };
        Err(Failure(format!(
            "`when` or `otherwise` of sinks changed {} times since the oldest queued request was received, and requests are routed by the \
             conditions under which they were received; {wait}",
            MOST - 1
        )))
    }

    /// Forgets the periods of which no record is queued, the last one too if it has no record yet: as after a change that was
    /// rolled back.
    fn forget(&mut self, queue: &QueueSpan) {
        self.forget_completed(queue);
        if self.periods.len() > 1 {
            self.periods.pop_if(|last| last.from >= queue.head);
        }
    }

    /// Forgets the periods that every cursor is past.
    fn forget_completed(&mut self, queue: &QueueSpan) {
        let low = queue.oldest.as_ref().map_or(u64::MAX, |(sequence, _)| *sequence);
        let ends: Vec<u64> = self.periods.iter().skip(1).map(|period| period.from).collect();
        let passed = ends.iter().take_while(|end| **end <= low).count();
        self.periods.drain(..passed);
    }

    /// The steps by which a sink selects among the records of the periods before the one in which the sinks are routed by `sinks`, with
    /// the numbers of these periods; those left out where they are the steps of now.
    pub(crate) fn earlier<'a>(
        &'a self,
        sinks: &'a BTreeMap<String, Routing>,
        name: &'a str,
    ) -> impl Iterator<Item = (u64, Vec<StepDefinition>)> {
        let current =
            if self.is_current(sinks) { self.periods.len().saturating_sub(1) } else { self.periods.len() };
        let before = self.periods.iter().take(current);
        before.filter_map(move |period| {
            let now = sinks.get(name)?;
            let steps = match period.sinks.get(name) {
                Some(routing) if routing == now => return None,
                Some(routing) => routing.steps(),
                None => self.of_absent(period, sinks, now)?,
            };
            Some((period.number, steps))
        })
    }

    /// The steps of a sink for a period without it: it is new, or was removed and came back. None where they are those of `now`.
    fn of_absent(
        &self,
        period: &Period,
        sinks: &BTreeMap<String, Routing>,
        now: &Routing,
    ) -> Option<Vec<StepDefinition>> {
        if *now == Routing::default() {
            return None;
        }
        // A sink with `otherwise` has no steps while no other sink has a `when`.
        let takes_the_rest = |name: &String| {
            let periods = self.periods.iter().map(|period| &period.sinks);
            periods.chain([sinks]).any(|of| of.get(name).is_some_and(|routing| !routing.drop.is_empty()))
        };
        if period.sinks.keys().any(takes_the_rest) {
            // That one was to take what was not taken by others.
            return Some(now.leaving_all());
        }
        if now.drop.is_empty() {
            return None;
        }
        let drop = period.sinks.values().flat_map(|routing| routing.keep.clone()).collect();
        Some(Routing { keep: Vec::new(), drop }.steps())
    }

    /// The sequences of the first record of a period, and of the first behind it; `None` for the current one, or one that is forgotten.
    /// The oldest has all records before the next one: a journal that was removed and begins anew has sequences below its first.
    pub(crate) fn bounds(&self, number: u64) -> Option<(u64, u64)> {
        let at = self.periods.iter().position(|period| period.number == number)?;
        let from = if at == 0 { 0 } else { self.periods.get(at)?.from };
        Some((from, self.periods.get(at + 1)?.from))
    }
}

#[cfg(test)]
mod tests {
    use super::file::{parsed, written};
    use super::*;

    fn sinks(conditions: &[(&str, &str)]) -> BTreeMap<String, Routing> {
        let routing = |text: &str| Routing { keep: vec![text.to_owned()], drop: Vec::new() };
        conditions.iter().map(|(name, text)| ((*name).to_owned(), routing(text))).collect()
    }

    fn span(head: u64, low: Option<u64>) -> QueueSpan {
        QueueSpan { head, oldest: low.map(|low| (low, "a".to_owned())) }
    }

    fn earlier(
        history: &RoutingHistory,
        now: &BTreeMap<String, Routing>,
        name: &str,
    ) -> Vec<(String, Option<(u64, u64)>)> {
        let earlier = history.earlier(now, name);
        let shown = |steps: &[StepDefinition]| match steps {
            [StepDefinition { kind: StepKind::Keep(texts), .. }] => texts.concat(),
            [StepDefinition { kind: StepKind::Drop(texts), .. }] => format!("not {}", texts.join(", ")),
            _ => format!("{steps:?}"),
        };
        earlier.map(|(number, steps)| (shown(&steps), history.bounds(number))).collect()
    }

    /// A record is routed by the conditions of its period, until no record of that is queued; also after a restart.
    #[test]
    fn each_record_has_the_routing_of_its_period() {
        let (first, second, third) = (
            sinks(&[("a", "1"), ("b", "1")]),
            sinks(&[("a", "2"), ("b", "1")]),
            sinks(&[("a", "3"), ("b", "1")]),
        );
        let mut history = RoutingHistory::default();
        history.begin(&first, &span(10, Some(5)));
        assert_eq!(earlier(&history, &first, "a"), []);
        history.begin(&second, &span(20, Some(5)));
        // As it is planned, before the place is known.
        assert_eq!(earlier(&history, &third, "a"), [("1".to_owned(), Some((0, 20))), ("2".to_owned(), None)]);
        history.begin(&third, &span(30, Some(5)));
        assert_eq!(
            earlier(&history, &third, "a"),
            [("1".to_owned(), Some((0, 20))), ("2".to_owned(), Some((20, 30)))]
        );
        assert_eq!(parsed(&written(&history).to_string()), Some(history.clone()));
        history.begin(&third, &span(40, Some(20)));
        assert_eq!(earlier(&history, &third, "a"), [("2".to_owned(), Some((0, 30)))]);
        history.begin(&third, &span(40, None));
        assert_eq!(earlier(&history, &third, "a"), []);
    }

    /// A sink that is new has one routing for all; and the number of periods is bounded.
    #[test]
    fn a_routing_may_change_a_few_times_while_records_are_queued() {
        let mut history = RoutingHistory::default();
        history.begin(&sinks(&[("a", "0")]), &span(0, Some(0)));
        history.begin(&sinks(&[("a", "0"), ("new", "7")]), &span(5, Some(0)));
        assert_eq!(history.periods.len(), 1);
        for period in 1..MOST as u64 {
            let now = sinks(&[("a", &period.to_string())]);
            history.check_room(&now, &span(10 * period, Some(0))).unwrap_or_else(|_| panic!("{period}"));
            history.begin(&now, &span(10 * period, Some(0)));
        }
        let next = sinks(&[("a", "next")]);
        assert!(history.check_room(&next, &span(50, Some(9))).is_err());
        assert!(history.check_room(&next, &span(50, Some(10))).is_ok());
        assert!(history.check_room(&sinks(&[("a", "3")]), &span(50, Some(0))).is_ok(), "it is as it was");
    }

    /// A sink that was not there when a record came takes nothing of it if another took what was left, and if none did, what it would
    /// have taken.
    #[test]
    fn a_sink_that_was_away_takes_nothing_twice() {
        let otherwise =
            |text: &str| ("rest".to_owned(), Routing { keep: Vec::new(), drop: vec![text.to_owned()] });
        let with = |mut routing: BTreeMap<String, Routing>, (name, rest): (String, Routing)| {
            routing.insert(name, rest);
            routing
        };
        let errors = |severity| sinks(&[("errors", severity)]);
        let history = |periods: [&BTreeMap<String, Routing>; 3]| {
            let mut history = RoutingHistory::default();
            let each = periods.into_iter().zip([0, 10, 20]);
            each.for_each(|(routing, head)| history.begin(routing, &span(head, Some(0))));
            history
        };
        let both = with(errors("17"), otherwise("17"));
        // Without `errors`, `rest` takes everything: also where it is left with no condition.
        let all = BTreeMap::from([("rest".to_owned(), Routing::default())]);
        for away in [with(BTreeMap::new(), otherwise("other")), all] {
            let nothing = [("not 17, not (17)".to_owned(), Some((10, 20)))];
            assert_eq!(earlier(&history([&both, &away, &both]), &both, "errors"), nothing);
        }
        // Nobody took what `errors` would have taken: it does when it is back.
        let one = sinks(&[("b", "1"), ("errors", "1")]);
        let (two, three) = (sinks(&[("b", "2")]), sinks(&[("b", "3"), ("errors", "1")]));
        let mut second = history([&one, &two, &three]);
        assert_eq!(earlier(&second, &three, "errors"), []);
        // A new sink that takes the rest leaves what the sinks of that period took.
        let now = with(errors("18"), otherwise("18"));
        second = history([&errors("1"), &errors("17"), &now]);
        assert_eq!(
            earlier(&second, &now, "rest"),
            [("not 1".to_owned(), Some((0, 10))), ("not 17".to_owned(), Some((10, 20)))]
        );
    }

    /// The records of a journal that was removed, and begins anew, are of the oldest period that is known.
    #[test]
    fn sequences_may_begin_anew() {
        let mut history = RoutingHistory::default();
        history.begin(&sinks(&[("a", "0")]), &span(0, Some(0)));
        history.begin(&sinks(&[("a", "1")]), &span(200, Some(200)));
        history.begin(&sinks(&[("a", "1")]), &span(0, None));
        let now = sinks(&[("a", "2")]);
        history.begin(&now, &span(50, Some(3)));
        assert_eq!(earlier(&history, &now, "a"), [("1".to_owned(), Some((0, 50)))]);
    }

    /// A change that was rolled back before a record came leaves no period, so it takes no place from later changes.
    #[test]
    fn a_period_without_records_is_forgotten() {
        let (kept, failed) = (sinks(&[("a", "kept")]), sinks(&[("a", "failed")]));
        let mut history = RoutingHistory::default();
        history.begin(&kept, &span(0, Some(0)));
        let before = history.clone();
        for _ in 0..2 * MOST {
            history.check_room(&failed, &span(7, Some(0))).unwrap_or_else(|Failure(error)| panic!("{error}"));
            history.begin(&failed, &span(7, Some(0)));
            assert_eq!(earlier(&history, &failed, "a"), [("kept".to_owned(), Some((0, 7)))]);
            history.begin(&kept, &span(7, Some(0)));
            assert_eq!(history, before);
        }
        history.begin(&failed, &span(7, Some(0)));
        history.begin(&kept, &span(8, Some(0)));
        assert_eq!(earlier(&history, &kept, "a"), [("failed".to_owned(), Some((7, 8)))]);
    }

    /// A refused change names what holds the queue: also where no sink of that name is left.
    #[test]
    fn a_refusal_names_the_cursor_that_is_furthest_behind() {
        let mut history = RoutingHistory::default();
        for period in 0..MOST as u64 {
            history.begin(&sinks(&[("a", &period.to_string())]), &span(10 * period, Some(0)));
        }
        let refused = |name: &str| {
            let queue = QueueSpan { head: 50, oldest: Some((0, name.to_owned())) };
            let Err(Failure(error)) = history.check_room(&sinks(&[("a", "next")]), &queue) else {
                panic!("there are {MOST} periods")
            };
            error
        };
        assert!(refused("a").contains("when the sink `a` has delivered"), "{}", refused("a"));
        assert!(refused("gone").contains("run `tidegate journal forget gone`"), "{}", refused("gone"));
    }
}
