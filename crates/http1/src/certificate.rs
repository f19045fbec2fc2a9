//! Who is at the other end, as far as the transport knows.

/// The names in a client's certificate that the listener's authority has signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificate {
    /// `CN`
    pub common_name: Option<Box<str>>,
    /// `O`
    pub organizations: Box<[Box<str>]>,
    /// `OU`
    pub organizational_units: Box<[Box<str>]>,
}
