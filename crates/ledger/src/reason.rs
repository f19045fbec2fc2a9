//! Every reason for which a request is refused or an item dropped: one table each, from which come the
//! metrics' labels, the pages and the documentation.

/// Declares reasons: a number that is stable on disk, a name for labels, and one sentence that explains it.
macro_rules! reasons {
    ($(#[$about:meta])* $reasons:ident { $($number:literal $reason:ident $name:literal: $sentence:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $reasons {
            $(#[doc = $sentence] $reason = $number,)+
        }

        impl $reasons {
            /// All reasons, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$reason),+];

            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The label value and the word for it on the pages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)+
                }
            }

            /// The reason, in one sentence.
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$reason => $sentence,)+
                }
            }
        }
    };
}

reasons! {
    /// Why a request was refused, before anything of it was acknowledged.
    Refusal {
        0 Memory "memory": "There was no memory for the body within the time that a request may wait.",
        1 Disk "disk": "The journal could not take it: its quota is used up, or the disk is full or failing.",
        2 TooLarge "too_large": "The body, as sent or decompressed, is larger than allowed.",
        3 Malformed "malformed": "The body contradicts its headers, or violates its format.",
        4 Unsupported "unsupported": "The content type, encoding or protocol version is not one that is spoken here.",
        5 Timeout "timeout": "The headers or the body did not arrive in time.",
        6 Connections "connections": "As many connections as are allowed were open.",
        7 Shutdown "shutdown": "The gateway was stopping, or not ready yet.",
        8 Method "method": "The path exists, but not with this method.",
        9 NotFound "not_found": "Nothing is served under this path.",
        10 Headers "headers": "The request line or headers break HTTP, are ambiguous, or are too many or too long.",
        11 Abandoned "abandoned": "The client went away before it was answered.",
        12 Internal "internal": "The gateway failed while serving it; see the log.",
        13 Unauthorized "unauthorized": "The client sent no credentials, or wrong ones.",
        14 Forbidden "forbidden": "The client is authenticated, but not authorised to send this.",
        15 RateLimited "rate_limit": "A limit of requests, items or bytes a second was reached.",
        16 Concurrency "concurrency": "A limit on concurrent requests, or on their bytes, was reached.",
        17 Tenant "tenant": "The tenant's name is missing, or not one that can be a name.",
        18 Share "share": "Memory was short, and the tenant held its fair part of it already.",
        19 Destination "destination": "The destination of forwarded items could not be reached, refused the gateway, or did not respond.",
    }
}

reasons! {
    /// Why an item was dropped for a sink, after it had been acknowledged.
    Dropped {
        0 Rejected "rejected": "The receiver rejected it permanently (a 4xx status other than 429).",
        1 Damaged "damaged": "The journal's record can no longer be read.",
        2 Quota "quota": "The journal was full and set to drop the oldest.",
        3 TooLarge "too_large": "It alone is larger than a request to the peer may be.",
        4 Untranslatable "untranslatable": "The receiver's protocol cannot express it.",
        5 Skipped "skipped": "An operator moved the cursor forward.",
        6 Filtered "filtered": "A step of the sink's pipeline dropped it.",
        7 SampledOut "sampled_out": "A step of the sink's pipeline left it out of the sample.",
    }
}

impl Dropped {
    /// Whether the configuration asks for it: nobody has to be told.
    pub const fn is_intended(self) -> bool {
        matches!(self, Dropped::Filtered | Dropped::SampledOut)
    }
}

const _: () =
    assert!(Dropped::COUNT <= crate::sink_ledger::REASONS, "a sink's book has no room for more reasons");
