//! What is wrong with a gateway that does not start or misbehaves, how one knows, and what to do.
//!
//! A [`Subject`] is what is known of the gateway from its configuration: plain data, so this crate knows no settings. It is
//! [examined](examine) by the [checks](CHECKS), a file and a line of a table each, which answer with [`Finding`]s. A [`Report`]
//! of them is printed as [text](Report::write_text) or [JSON](Report::json), or [archived](archive()) for a bug report.
//!
//! It promises:
//! - nothing is changed: no lock is taken, no record is written, no data is sent to a peer. A file without a name is written
//!   in the data folder to measure the disk, addresses are bound for a moment while no gateway runs, and peers get requests that
//!   store nothing;
//! - it ends: a peer, a journal, a lake and a disk have a time each ([`PEER_LIMIT`], [`READ_LIMIT`]), and what was not looked at
//!   for lack of it is said;
//! - no secret of the configuration is in what it prints, and neither a secret nor telemetry in an archive.
//!
//! It leaves to others: reading the configuration and planning the memory (the program), repairing anything.

mod archive;
mod checks;
mod examination;
mod finding;
mod mask;
mod probe;
mod report;
mod subject;
mod system;

pub use archive::{Archive, archive};
pub use checks::{CHECKS, Check};
pub use examination::{Examination, Options, READ_LIMIT, examine};
pub use finding::{Finding, Severity};
pub use mask::Masker;
pub use probe::PEER_LIMIT;
pub use report::Report;
pub use subject::{
    Address, Certificate, Configuration, DataFolder, Durability, Files, Folder, Journal, Lake, Listener,
    Memory, Peer, Program, Setup, Subject,
};
