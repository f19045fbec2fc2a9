//! How fast a replay goes.

use crate::Failure;
use std::time::Duration;
use tidegate_config::Bytes;
use tokio::time::{Instant, sleep_until};

/// After a wait for a busy gateway, at most so much time is caught up with in one go.
const CATCH_UP: Duration = Duration::from_secs(1);

/// At most so much a second.
#[derive(Debug)]
pub(super) struct Pace {
    unit: Unit,
    per_second: f64,
    /// When the next request may begin.
    next: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Items,
    Bytes,
}

impl Pace {
    /// A rate as people write it: `5000/s`, `200k items/s`, `10MB/s`.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn parse(text: &str) -> Result<Pace, Failure> {
        let wrong = || {
            Failure(format!("--rate {text}: write items or bytes a second, as in 5000/s, 200k/s or 10MB/s"))
        };
        let amount = text.trim().strip_suffix("/s").ok_or_else(wrong)?;
        let number = amount.trim_end_matches("items").trim_end();
        let (unit, per_second) = match items(number) {
            Some(items) => (Unit::Items, items),
            None => (Unit::Bytes, number.parse::<Bytes>().map_err(|_| wrong())?.get() as f64),
        };
        if per_second < 1.0 {
            return Err(wrong());
        }
        Ok(Pace { unit, per_second, next: None })
    }

    /// Waits until so much may be sent.
    pub(super) async fn wait(&mut self, items: u32, bytes: usize) {
        let now = Instant::now();
        let begin = self.next.map_or(now, |next| next.max(now - CATCH_UP));
        let amount = match self.unit {
            Unit::Items => f64::from(items),
            Unit::Bytes => bytes as f64,
        };
        self.next =
            Some(begin + Duration::try_from_secs_f64(amount / self.per_second).unwrap_or(Duration::MAX / 4));
        sleep_until(begin).await;
    }
}

/// A number of items, with k or M for thousands and millions.
fn items(number: &str) -> Option<f64> {
    let (digits, factor) = match number.as_bytes().last()? {
        b'k' => (number.trim_end_matches('k'), 1e3),
        b'M' => (number.trim_end_matches('M'), 1e6),
        _ => (number, 1.0),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| digits.parse::<f64>().ok()).flatten().map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_items_or_bytes() {
        let parsed = |text: &str| Pace::parse(text).ok().map(|pace| (pace.unit, pace.per_second));
        assert_eq!(parsed("5000/s"), Some((Unit::Items, 5000.0)));
        assert_eq!(parsed("1.5k items/s"), Some((Unit::Items, 1500.0)));
        assert_eq!(parsed("2M/s"), Some((Unit::Items, 2e6)));
        assert_eq!(parsed("10MB/s"), Some((Unit::Bytes, 1e7)));
        assert_eq!(parsed("1 MiB/s"), Some((Unit::Bytes, 1_048_576.0)));
        for wrong in ["", "/s", "5000", "fast", "0/s", "-1/s", "5/min", "k/s"] {
            assert!(Pace::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_sent_than_the_rate_allows() {
        let mut pace = Pace::parse("100/s").unwrap();
        let begun = Instant::now();
        for _ in 0..11 {
            pace.wait(50, 0).await;
        }
        assert_eq!(begun.elapsed().as_millis(), 5000, "the eleventh begins after ten half seconds");
        // Ten seconds in which nothing could be sent are not caught up with in one go.
        tokio::time::advance(Duration::from_secs(10)).await;
        let begun = Instant::now();
        for _ in 0..5 {
            pace.wait(50, 0).await;
        }
        assert_eq!(begun.elapsed().as_millis(), 1000);
    }
}
