//! Flushes: fixes the order of the series, and forgets at the end.

use crate::aggregator::Aggregator;
use crate::series::Series;
use crate::settings::Temporality;

/// A flush of all series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flush {
    /// Its number: one more than that of the flush before. The first has 1.
    pub number: u64,
    /// The time of its data points, in milliseconds since 1970.
    pub at_ms: u64,
}

impl Aggregator {
    /// Begins a flush, or continues the one under way. Until its [end](Self::end_flush) observations are lost.
    ///
    /// The time of its data points is `at_ms`, or just behind the last flush where that is later.
    pub fn begin_flush(&mut self, at_ms: u64) -> Flush {
        if let Some(flush) = self.flush {
            return flush;
        }
        let flush = Flush {
            number: self.flushed.number.saturating_add(1),
            at_ms: at_ms.max(self.flushed.at_ms.saturating_add(1)),
        };
        // The clock of records may be ahead. A start that changed with each flush would look like a restart of the series.
        for series in self.series.all_mut() {
            series.set_start_ms(series.start_ms().min(flush.at_ms));
        }
        self.continue_flush(flush);
        flush
    }

    /// The flush under way.
    #[must_use]
    pub fn flush(&self) -> Option<Flush> {
        self.flush
    }

    /// The last flush that ended; number 0 where there was none.
    #[must_use]
    pub fn last_flush(&self) -> Flush {
        self.flushed
    }

    /// The next flush has a number behind this one, where nothing was flushed yet: its owner knows of flushes whose state is gone.
    pub fn number_flushes_from(&mut self, number: u64) {
        self.flushed.number = self.flushed.number.max(number);
    }

    /// Ends the flush under way: all of it was delivered, or given up. Delta series are forgotten, and cumulative ones that expired.
    pub fn end_flush(&mut self) {
        let Some(flush) = self.flush.take() else { return };
        self.flushed = flush;
        match self.settings.temporality {
            Temporality::Delta => {
                self.series.clear();
                self.resources.clear();
                self.blob.clear();
            }
            Temporality::Cumulative => self.expire(),
        }
        self.has_news = false;
        self.series.clear_exemplars();
        self.order.clear();
        self.forget_numbers();
    }

    /// Ends the flush under way before its end, which cannot come now: the series before the place `next` were delivered, and the others
    /// wait for the next flush.
    pub fn end_flush_at(&mut self, next: u32) {
        let Some(flush) = self.flush.take() else { return };
        self.flushed = flush;
        if self.settings.temporality == Temporality::Delta {
            for number in self.order.iter().take(next as usize) {
                self.series.empty(*number, flush.at_ms);
            }
        }
        self.order.clear();
    }

    /// Sorts the series by tenant, resource, measure and age. The same table has the same order after a restart.
    pub(crate) fn continue_flush(&mut self, flush: Flush) {
        let Aggregator { order, resources, series, blob, .. } = self;
        order.clear();
        order.extend(0..resources.len() as u32);
        let tenant = |number: u32| resources.tenant(number, blob);
        order.sort_unstable_by(|a, b| tenant(*a).cmp(tenant(*b)).then(a.cmp(b)));
        for (rank, number) in (0..).zip(&*order) {
            resources.set_rank(*number, rank);
        }
        order.clear();
        order.extend(0..series.len() as u32);
        order.sort_unstable_by_key(|number| {
            let series = series.at(*number);
            (resources.rank(series.resource), series.measure, *number)
        });
        self.flush = Some(flush);
    }

    fn expire(&mut self) {
        let Aggregator { settings, series, resources, blob, order, clock_ms, .. } = self;
        let expire_ms = settings.expire_ms;
        let clock_ms = *clock_ms;
        // It was seen at some time in that second: it never expires early.
        let is_expired = |last_seen_s: u32| {
            let seen_ms = (u64::from(last_seen_s) + 1) * 1000;
            expire_ms > 0 && clock_ms >= seen_ms.saturating_add(expire_ms)
        };
        (0..resources.len()).for_each(|number| resources.set_rank(number as u32, 0));
        let mut expired = 0;
        for series in series.all() {
            if is_expired(series.last_seen_s()) {
                expired += 1;
            } else {
                resources.set_rank(series.resource, 1);
            }
        }
        let is_unused = |number: usize| resources.rank(number as u32) == 0;
        if expired == 0 && !(0..resources.len()).any(is_unused) {
            return;
        }
        self.counts.expired += expired;
        resources.compact(blob, order);
        let is_kept = |series: &Series| !is_expired(series.last_seen_s());
        series.compact(blob, order, is_kept, |number| resources.is_overflow(number));
    }
}
