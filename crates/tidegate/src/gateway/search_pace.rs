//! When searches run: at once for those who search now and then, with rests for those who search without pause.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tidegate_limit::{Moment, PerSecond, Rate};
use tokio::time::{Instant, sleep_until};

/// Processor time that a search may take beside the data, in milliseconds: enough for a short one, which is then answered on a busy machine,
/// too. A longer one runs only where a processor would be idle.
const PROMPT_MS: u64 = 40;
/// The allowance of prompt processor time that all searches share: ten searches at once, and 10 ms for each second without a search. A person
/// gets prompt answers, and programs that search without pause leave the processors to the data. Each search costs [`PROMPT_MS`], even if it
/// uses less.
const PROMPT_OF_ALL: PerSecond = PerSecond { rate: 10, burst: 10 * PROMPT_MS };
/// The longest rest before a search: its client waits as long, and those behind it.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// The pace of all searches. One runs at a time.
pub(crate) struct SearchPace {
    prompt: Rate,
    /// When the next search may begin that is not prompt.
    rested: Mutex<Instant>,
}

/// A search that runs, until this is dropped; its client may go at any time.
pub(super) struct RunningSearch<'p> {
    pace: &'p SearchPace,
    begun: Instant,
    /// Processor time that it may take beside the data, in milliseconds.
    pub(super) prompt_ms: u64,
}

impl Default for SearchPace {
    fn default() -> Self {
        SearchPace { prompt: Rate::new(Some(PROMPT_OF_ALL)), rested: Mutex::new(Instant::now()) }
    }
}

impl SearchPace {
    /// Begins a search: at once while there is prompt time, otherwise when as much time has passed as the one before took. Even what runs
    /// where a processor would be idle takes caches and memory bandwidth from the data.
    pub(super) async fn begin(&self) -> RunningSearch<'_> {
        let is_prompt = self.prompt.take(Moment::now(), PROMPT_MS).is_ok();
        if !is_prompt {
            let rested = *self.rested.lock().unwrap_or_else(PoisonError::into_inner);
            sleep_until(rested).await;
        }
        let prompt_ms = if is_prompt { PROMPT_MS } else { 0 };
        RunningSearch { pace: self, begun: Instant::now(), prompt_ms }
    }
}

impl Drop for RunningSearch<'_> {
    fn drop(&mut self) {
        let (now, took) = (Instant::now(), self.begun.elapsed());
        // The allowance does not grow while a search runs.
        let unearned = (took.as_millis() * u128::from(PROMPT_OF_ALL.rate)).div_ceil(1000);
        self.pace.prompt.charge(Moment::now(), u64::try_from(unearned).unwrap_or(u64::MAX));
        let rested = now + took.min(LONGEST_REST);
        *self.pace.rested.lock().unwrap_or_else(PoisonError::into_inner) = rested;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    /// Ten searches begin at once; each of the others rests for as long as the one before it took, though not for longer than the longest
    /// rest, and is not prompt.
    #[tokio::test(start_paused = true)]
    async fn searches_without_pause_rest() {
        let pace = SearchPace::default();
        let begun = Instant::now();
        for _ in 0..10 {
            assert_eq!(pace.begin().await.prompt_ms, PROMPT_MS);
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for (took, rest) in [(0, 0), (300, 300), (25_000, 2_000), (1, 1)] {
            let running = pace.begin().await;
            assert_eq!(running.prompt_ms, 0);
            advance(Duration::from_millis(took)).await;
            drop(running);
            let ended = Instant::now();
            drop(pace.begin().await);
            assert_eq!(ended.elapsed(), Duration::from_millis(rest), "after {took} ms");
        }
    }

    /// A client that leaves during its rest does not delay the next search.
    #[tokio::test(start_paused = true)]
    async fn a_search_that_never_began_makes_nobody_rest() {
        let pace = SearchPace::default();
        for _ in 0..10 {
            pace.begin().await;
        }
        let running = pace.begin().await;
        advance(Duration::from_secs(1)).await;
        drop(running);
        let impatient = tokio::time::timeout(Duration::from_millis(400), pace.begin()).await;
        assert!(impatient.is_err());
        let asked = Instant::now();
        pace.begin().await;
        assert_eq!(asked.elapsed(), Duration::from_millis(600));
    }
}
