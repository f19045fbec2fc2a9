/// The unit of a meter's numbers, and so their display. Meters hold integers; only the text is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number; nothing is added to the name.
    None,
    /// Held as nanoseconds, shown as seconds; the name ends in `_seconds`.
    Seconds,
    /// Bytes; the name ends in `_bytes`.
    Bytes,
}

impl Unit {
    /// The name's suffix.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "_seconds",
            Self::Bytes => "_bytes",
        }
    }

    /// The unit as the text format declares it.
    pub(crate) fn declared(self) -> Option<prometheus_client::registry::Unit> {
        match self {
            Self::None => None,
            Self::Seconds => Some(prometheus_client::registry::Unit::Seconds),
            Self::Bytes => Some(prometheus_client::registry::Unit::Bytes),
        }
    }

    /// The held number as it is shown, or `None` when it is shown as it is held.
    pub(crate) fn scaled(self, held: f64) -> Option<f64> {
        match self {
            // Dividing by 1e9 rounds once; multiplying by 1e-9 would round twice and show 0.30000000000000004.
            Self::Seconds => Some(held / 1e9),
            Self::None | Self::Bytes => None,
        }
    }

    /// The held number as it is shown.
    pub(crate) fn shown(self, held: f64) -> f64 {
        self.scaled(held).unwrap_or(held)
    }
}
