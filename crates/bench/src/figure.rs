//! The measurements: a row of the bench, and its figures.

use crate::Args;
use crate::Failure;
use crate::subject::Program;
use std::path::PathBuf;
use std::time::Duration;

/// Something that can be measured.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) measure: fn(&Bench) -> Result<Vec<Figure>, Failure>,
}

/// One figure and its bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    /// Its text, with its unit.
    pub(crate) what: String,
    pub(crate) bar: Bar,
    pub(crate) measured: f64,
    /// The inputs of its computation.
    pub(crate) details: Vec<(&'static str, f64)>,
}

/// The target of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

impl Bar {
    pub(crate) fn value(self) -> f64 {
        match self {
            Bar::AtMost(value) | Bar::AtLeast(value) => value,
        }
    }

    /// Whether `measured` reaches it, as precisely as it is printed.
    pub(crate) fn is_met(self, measured: f64) -> bool {
        let printed = (measured * 100.0).round() / 100.0;
        match self {
            Bar::AtMost(value) => printed <= value,
            Bar::AtLeast(value) => printed >= value,
        }
    }
}

/// How to measure.
pub(crate) struct Bench {
    /// How long the loaded part of a row takes.
    pub(crate) seconds: Duration,
    /// How large the journal is with which a gateway is started.
    pub(crate) backlog: u64,
    /// How many rows the lake has in which is searched.
    pub(crate) rows: u64,
    /// Where gateways under test keep their data.
    pub(crate) dir: PathBuf,
    /// The measured quantity.
    pub(crate) subject: Program,
    /// Thanos, to compare with.
    pub(crate) thanos: Option<PathBuf>,
}

impl Bench {
    pub(crate) fn new(args: &Args) -> Result<Bench, Failure> {
        let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
        std::fs::create_dir_all(&dir).map_err(|error| format!("making {}: {error}", dir.display()))?;
        let seconds = Duration::from_secs(if args.quick { 3 } else { args.seconds });
        let backlog = if args.quick { 512 << 20 } else { 5 << 30 };
        let rows = if args.quick { 400_000 } else { 10_000_000 };
        let subject = Program::find(args.subject.as_deref())?;
        Ok(Bench { seconds, backlog, rows, dir, subject, thanos: args.thanos.clone() })
    }
}

/// The middle one; of an even number, the lower of the two.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_by_what_is_printed() {
        assert!(Bar::AtMost(0.0).is_met(0.004) && !Bar::AtMost(0.0).is_met(0.006));
        assert!(Bar::AtLeast(0.8).is_met(0.8) && !Bar::AtLeast(0.8).is_met(0.79));
        assert!(!Bar::AtMost(1.0).is_met(f64::NAN));
    }

    #[test]
    fn one_odd_round_does_not_move_the_median() {
        assert_eq!(median(vec![3.0, 900.0, 1.0]), 3.0);
        assert!(median(Vec::new()).is_nan());
    }
}
