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
        3 Malformed "malformed": "The body is not what its headers say, or breaks a rule of its format.",
        4 Unsupported "unsupported": "The content type, encoding or protocol version is not one that is spoken here.",
        5 Timeout "timeout": "The headers or the body did not arrive in time.",
        6 Connections "connections": "As many connections as are allowed were open.",
        7 Shutdown "shutdown": "The gateway was stopping.",
        8 Method "method": "The path exists, but not with this method.",
        9 NotFound "not_found": "Nothing is served under this path.",
        10 Headers "headers": "The request line or headers break HTTP, are ambiguous, or are too many or too long.",
        11 Abandoned "abandoned": "The client went away before it was answered.",
        12 Internal "internal": "The gateway failed while serving it; the log says how.",
        13 Unauthorized "unauthorized": "Who sent it did not say who it is, or could not prove it.",
        14 Forbidden "forbidden": "Who sent it is known, and may not send this.",
        15 RateLimited "rate_limit": "A limit of requests, items or bytes a second was reached.",
        16 Concurrency "concurrency": "A limit of requests at a time, or of their bytes, was reached.",
        17 Tenant "tenant": "The tenant's name is missing, or not one that can be a name.",
        18 Share "share": "Memory was short, and the tenant held its fair part of it already.",
        19 Destination "destination": "The destination of forwarded items could not be reached, refused the gateway, or did not respond.",
    }
}

reasons! {
    /// Why an item was dropped for a sink, after it had been acknowledged.
    Dropped {
        0 Rejected "rejected": "The sink's peer said for good that it does not want it (a status 4xx other than 429).",
        1 Damaged "damaged": "The journal's record can no longer be read.",
        2 Quota "quota": "The journal was full and set to drop the oldest.",
        3 TooLarge "too_large": "It alone is larger than a request to the peer may be.",
        4 Untranslatable "untranslatable": "The peer's protocol has no way to say it.",
        5 Skipped "skipped": "Somebody moved the cursor forward by hand.",
    }
}

const _: () =
    assert!(Dropped::COUNT <= crate::sink_ledger::REASONS, "a sink's book has no room for more reasons");
