//! The structures of the header, member for member.

use std::ffi::{c_char, c_int};

/// The header's `enum tidegate_result`.
pub const TIDEGATE_OK: c_int = 0;
/// The ring is full of what is more valuable.
pub const TIDEGATE_FULL: c_int = 1;
/// Larger than one event may be.
pub const TIDEGATE_TOO_LARGE: c_int = 2;
/// After shutdown, or disabled.
pub const TIDEGATE_SHUT_DOWN: c_int = 3;
/// Time was up before everything was sent.
pub const TIDEGATE_LEFT: c_int = 4;
/// A pointer or number that cannot be.
pub const TIDEGATE_WRONG: c_int = 5;

/// `tidegate_text`
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Text {
    bytes: *const c_char,
    len: usize,
}

/// `tidegate_attribute`
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "the header documents them")]
pub struct Attribute {
    pub key: Text,
    pub kind: u32,
    /// A C `bool`; any byte is taken, so that none can be an invalid value.
    pub boolean: u8,
    pub integer: i64,
    pub number: f64,
    pub text: Text,
}

macro_rules! structure {
    ($(#[$documentation:meta])* $name:ident { $($member:ident: $type:ty,)* }) => {
        $(#[$documentation])*
        #[derive(Clone, Copy)]
        #[repr(C)]
        #[allow(missing_docs, reason = "the header documents them")]
        pub struct $name {
            pub size: usize,
            $(pub $member: $type,)*
        }

        impl $name {
            /// The structure, if it is there and as long as this version knows it.
            ///
            /// # Safety
            /// `from` is NULL, or points to `from->size` bytes of it, and to a size at least.
            #[allow(dead_code, reason = "one is only written")]
            pub(crate) unsafe fn read(from: *const Self) -> Option<Self> {
                if from.is_null() {
                    return None;
                }
                // SAFETY: a size is there, the caller promised; it is the first member.
                let size = unsafe { from.cast::<usize>().read_unaligned() };
                // SAFETY: so many bytes are there, the caller promised. All members are plain numbers, byte
                // arrays and pointers, for which any bytes are valid.
                (size >= size_of::<Self>()).then(|| unsafe { from.read_unaligned() })
            }
        }
    };
}

structure! {
    /// `tidegate_span`
    Span {
        trace_id: [u8; 16],
        span_id: [u8; 8],
        parent_id: [u8; 8],
        parent_is_remote: u8,
        flags: u8,
        kind: u32,
        status: u32,
        name: Text,
        status_message: Text,
        start_unix_nano: u64,
        end_unix_nano: u64,
        attributes: *const Attribute,
        attribute_count: usize,
    }
}

structure! {
    /// `tidegate_log`
    Log {
        time_unix_nano: u64,
        severity: u32,
        body: Text,
        event_name: Text,
        trace_id: [u8; 16],
        span_id: [u8; 8],
        flags: u8,
        attributes: *const Attribute,
        attribute_count: usize,
    }
}

structure! {
    /// `tidegate_metric`
    Metric {
        name: Text,
        unit: Text,
        description: Text,
        is_sum: u8,
        is_integer: u8,
        number: f64,
        integer: i64,
        start_unix_nano: u64,
        time_unix_nano: u64,
        attributes: *const Attribute,
        attribute_count: usize,
    }
}

structure! {
    /// `tidegate_stats`
    Stats {
        enqueued: u64,
        sent: u64,
        dropped: u64,
        queued: u64,
        queued_bytes: u64,
        ring_bytes: u64,
        requests: u64,
        retries: u64,
        wire_bytes: u64,
        memory_bytes: u64,
    }
}

impl Stats {
    /// Writes as many members as the caller knows of; false if it is not there.
    ///
    /// # Safety
    /// `to` is NULL, or points to `to->size` bytes, and to a size at least.
    pub(crate) unsafe fn write_to(mut self, to: *mut Stats) -> bool {
        if to.is_null() {
            return false;
        }
        // SAFETY: a size is there, the caller promised; it is the first member.
        let room = unsafe { to.cast::<usize>().read_unaligned() };
        self.size = room.min(size_of::<Stats>());
        // SAFETY: both sides have so many bytes, and `self` is ours.
        unsafe { std::ptr::copy_nonoverlapping((&raw const self).cast::<u8>(), to.cast::<u8>(), self.size) };
        room >= size_of::<usize>()
    }
}

impl Text {
    /// # Safety
    /// `bytes` is NULL, or points to `len` bytes that live as long as the result is used.
    pub(crate) unsafe fn as_bytes<'a>(self) -> &'a [u8] {
        if self.bytes.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.bytes.cast(), self.len) }
    }

    /// # Safety
    /// As for [`as_bytes`](Text::as_bytes).
    pub(crate) unsafe fn as_str<'a>(self) -> &'a str {
        // SAFETY: the caller's promise.
        valid(unsafe { self.as_bytes() })
    }
}

/// Up to the first byte that is not UTF-8.
pub(crate) fn valid(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let end = bytes.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(end).unwrap_or_default()
        }
    }
}
