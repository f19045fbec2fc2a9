//! The named shares of the budget, and their floors.

/// The users of memory, from upstream to downstream: when memory is short, shares that move data out borrow before
/// shares that take data in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Share {
    /// Bodies as they are received, until the journal has them.
    Ingest,
    /// Bodies decompressed to be checked; held for the length of one check and never across a wait.
    Decode,
    /// Items that wait for the answer of a destination, and its answers.
    Forward,
    /// The lake writer's columns and pages.
    Lake,
    /// Data read back from the journal for sending.
    Egress,
}

impl Share {
    /// How many shares there are.
    pub const COUNT: usize = 5;
    /// Every share, in declaration order.
    pub const ALL: [Share; Self::COUNT] =
        [Share::Ingest, Share::Decode, Share::Forward, Share::Lake, Share::Egress];

    /// The name in metrics, `/status` and `tidegate plan`.
    pub const fn name(self) -> &'static str {
        match self {
            Share::Ingest => "ingest",
            Share::Decode => "decode",
            Share::Forward => "forward",
            Share::Lake => "lake",
            Share::Egress => "egress",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// Bytes of each share that no other share can take, in the order of [`Share::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Floors([u64; Share::COUNT]);

impl Floors {
    /// No floors: everything is shared.
    pub const NONE: Floors = Floors([0; Share::COUNT]);

    /// The same floors with `share` set to `bytes`.
    #[must_use]
    pub const fn with(mut self, share: Share, bytes: u64) -> Self {
        self.0[share.index()] = bytes;
        self
    }

    /// The floor of `share`, in bytes.
    pub const fn of(&self, share: Share) -> u64 {
        self.0[share.index()]
    }

    /// All floors together, in bytes.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}
