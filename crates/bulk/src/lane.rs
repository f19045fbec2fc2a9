//! The lanes: groups of items that can share a request, independent of each other.

/// The fields of an item's answer that are read.
macro_rules! bulk_fields {
    () => {
        "took,items.*._id,items.*._version,items.*.result,items.*._seq_no,items.*._primary_term,\
         items.*.status,items.*.error.type,items.*.error.reason"
    };
}

/// The kind of request that carries an item. Each lane batches, sends and backs off independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Writes that are seen by searches when the index is refreshed next.
    Write,
    /// Writes with `refresh=true`.
    WriteRefresh,
    /// Writes with `refresh=wait_for`.
    WriteWait,
    /// Documents read by their ids.
    Get,
    /// Searches.
    Search,
}

/// Every lane, in the order of their indices.
pub const LANES: [Lane; Lane::COUNT] =
    [Lane::Write, Lane::WriteRefresh, Lane::WriteWait, Lane::Get, Lane::Search];

impl Lane {
    /// The number of lanes.
    pub const COUNT: usize = 5;
    /// How many of them write. They come first.
    pub(crate) const WRITES: usize = 3;

    /// Its name in the meters.
    pub const fn name(self) -> &'static str {
        match self {
            Lane::Write => "write",
            Lane::WriteRefresh => "write_refresh",
            Lane::WriteWait => "write_wait",
            Lane::Get => "get",
            Lane::Search => "search",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// Whether its requests change anything.
    pub const fn writes(self) -> bool {
        self.index() < Lane::WRITES
    }

    /// The path of requests whose responses are read unfiltered.
    pub(crate) const fn whole_path(self) -> &'static str {
        match self {
            Lane::Write => "/_bulk",
            Lane::WriteRefresh => "/_bulk?refresh=true",
            Lane::WriteWait => "/_bulk?refresh=wait_for",
            Lane::Get | Lane::Search => self.path(),
        }
    }

    /// Where its requests go. What is not read of an answer is not asked for.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Lane::Write => concat!("/_bulk?", "filter_path=", bulk_fields!()),
            Lane::WriteRefresh => concat!("/_bulk?refresh=true&", "filter_path=", bulk_fields!()),
            Lane::WriteWait => concat!("/_bulk?refresh=wait_for&", "filter_path=", bulk_fields!()),
            Lane::Get => "/_mget",
            Lane::Search => "/_msearch",
        }
    }

    /// The beginning of a body.
    pub(crate) const fn prefix(self) -> &'static [u8] {
        match self {
            Lane::Get => b"{\"docs\":[",
            _ => b"",
        }
    }

    /// The array in the answer that has one element for each item.
    pub(crate) const fn array(self) -> &'static str {
        match self {
            Lane::Get => "docs",
            Lane::Search => "responses",
            _ => "items",
        }
    }

    /// The media type of its bodies.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Lane::Get => "application/json",
            _ => "application/x-ndjson",
        }
    }
}
