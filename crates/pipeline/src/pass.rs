//! Steps that run together over one body: as few passes as give the same result as one step after the other.

use crate::access::Access;
use crate::level::LEVELS;
use crate::machine::arguments::literal;
use crate::memory::Slice;
use crate::ottl::field::Context;
use crate::ottl::signature::Effect;
use crate::record::point_attributes;
use crate::required::Required;
use crate::step::Step;
use crate::value::Value;
use tidegate_wire::otlp::Signal;

/// Steps that one walk over a body runs.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// The steps that work on each level, in order.
    pub(crate) levels: [Vec<usize>; LEVELS],
    /// All of its steps, in order.
    pub(crate) steps: Vec<usize>,
    pub(crate) access: Access,
    /// Whether a level's own fields are changed from a level below.
    pub(crate) late: [bool; LEVELS],
    /// Whether a step may drop events or points.
    drops_members: bool,
    /// The keys that statements on metrics look for among the attributes of points, by their places in the constants.
    pub(crate) point_keys: Vec<Slice>,
    /// Content of bodies that it changes, where that is known.
    pub(crate) required: Option<Required>,
}

/// The passes of the steps over bodies of a signal: as few as give the same result as one step after the other.
pub(crate) fn passes(steps: &[Step], signal: Signal) -> Vec<Pass> {
    let mut passes: Vec<Pass> = Vec::new();
    // The lowest level of the last pass.
    let mut lowest = 0;
    for (number, step) in steps.iter().enumerate() {
        let levels = step.contexts(signal).map(Context::level);
        let Some((first, last)) = levels.fold(None, |range: Option<(usize, usize)>, level| {
            Some(range.map_or((level, level), |(first, last)| (first.min(level), last.max(level))))
        }) else {
            continue;
        };
        let access = step.access(signal);
        let late = std::array::from_fn(|level| level < last && access.writes_level(level));
        match passes.last_mut() {
            Some(pass) if lowest <= first && can_join(pass, &access, &late) => {
                pass.add(number, step, signal, access, late)
            }
            _ => {
                let mut pass = Pass::default();
                pass.add(number, step, signal, access, late);
                passes.push(pass);
                lowest = 0;
            }
        }
        lowest = lowest.max(last);
    }
    for pass in &mut passes {
        pass.point_keys.sort_unstable_by_key(|key| point_attributes::order(*key));
        pass.point_keys.dedup();
    }
    passes
}

/// Whether a step may run in one walk with the steps before: no level that one of them changes from below is of interest
/// to the other, and it does not count what they drop.
fn can_join(pass: &Pass, access: &Access, late: &[bool; LEVELS]) -> bool {
    let clashes = |level: usize| {
        late[level] && pass.access.touches_level(level) || pass.late[level] && access.touches_level(level)
    };
    let is_counted = pass.drops_members && access.counts_members;
    !is_counted && !(0..LEVELS).any(clashes)
}

impl Pass {
    fn add(&mut self, number: usize, step: &Step, signal: Signal, access: Access, late: [bool; LEVELS]) {
        for context in step.contexts(signal) {
            if let Some(steps) = self.levels.get_mut(context.level())
                && steps.last() != Some(&number)
            {
                steps.push(number);
            }
        }
        self.steps.push(number);
        step.for_each_call(signal, &mut |call| {
            if call.function.effects.contains(&Effect::ReadsPoints)
                && let Some(Value::Text(key)) = literal(&call.arguments, 0)
            {
                self.point_keys.push(key);
            }
        });
        self.drops_members |= step.drops() && step.contexts(signal).any(|context| context.level() == 3);
        self.access.add(&access);
        for (all, one) in self.late.iter_mut().zip(late) {
            *all |= one;
        }
    }
}
