/// The kind of telemetry of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Samples, histograms, exemplars, metadata.
    Metrics,
    /// Log records.
    Logs,
    /// Spans.
    Traces,
    /// Everything else, such as profiles.
    Events,
}

impl Signal {
    /// All signals.
    pub const ALL: [Self; 4] = [Self::Metrics, Self::Logs, Self::Traces, Self::Events];

    /// The label value and the word for it on the pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
            Self::Traces => "traces",
            Self::Events => "events",
        }
    }
}

/// The contents of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// How many items of each signal. Small, since each connection has room for it.
    items: [u32; Signal::ALL.len()],
    /// The body's bytes as they came.
    bytes: u64,
}

impl Counts {
    /// A body of `bytes` bytes as it came, with `items` of one signal.
    pub fn of(signal: Signal, items: u64, bytes: u64) -> Self {
        Self { items: [0; Signal::ALL.len()], bytes }.and(signal, items)
    }

    /// The same with `items` of `signal` more.
    #[must_use]
    pub fn and(mut self, signal: Signal, items: u64) -> Self {
        let sum = &mut self.items[signal as usize];
        *sum = sum.saturating_add(u32::try_from(items).unwrap_or(u32::MAX));
        self
    }

    /// The same with `items` in all, of the signal that most of them are of.
    #[must_use]
    pub fn reduced_to(self, items: u32) -> Self {
        let mut reduced = Self { items: [0; Signal::ALL.len()], ..self };
        let most = self.items.iter().enumerate().max_by_key(|(_, items)| **items);
        if let Some(left) = most.and_then(|(signal, _)| reduced.items.get_mut(signal)) {
            *left = items;
        }
        reduced
    }

    /// How many items of all signals.
    pub fn items(&self) -> u64 {
        self.items.iter().map(|items| u64::from(*items)).sum()
    }

    /// The body's bytes as they came.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds the items of each signal to those of a page.
    pub(crate) fn add_to(&self, page: &mut [u64; Signal::ALL.len()]) {
        for (sum, items) in page.iter_mut().zip(self.items) {
            *sum += u64::from(items);
        }
    }
}
