//! Follows log files through rotation, truncation, compression and restarts, and hands their lines over once each.
//!
//! A [`Tailer`] finds the files of its [inputs](Input), reads them in turns, and gives batches of OTLP logs with the
//! checkpoints of the files in them to a [`Destination`].
//!
//! Promises, argued in `design/files.md`:
//! - a file's offset moves with the records before it and only with them: nothing is lost or doubled by a crash or a refusal;
//! - a file is known by what it is, not by its name, so a rename, a copy or a compressed copy is not read twice;
//! - bytes that could not be read are counted with the reason;
//! - an idle file costs no system call but one `stat` a minute, and less than 1 KiB.
//!
//! Left to others: how bytes become records (`tidegate_lines`), durability (the destination), and what a file's resource is
//! ([`FileResource`]).

mod batch;
mod checkpoint;
mod compressed;
mod destination;
mod directories;
mod file;
mod glob;
mod head_index;
mod identity;
mod meters;
mod resource;
mod settings;
mod status;
mod tailer;
mod watch;

#[cfg(test)]
mod tests;

pub use batch::EncodedBatch;
pub use destination::{AppendError, Buffer, CheckpointChange, Destination};
pub use file::FileInfo;
pub use glob::{Glob, InvalidGlob};
pub use identity::FileId;
pub use meters::{LossReason, TailMeters};
pub use resource::{FileResource, PathResource, ResourceState, path_attributes};
pub use settings::{CHECKPOINT_BYTES, FILE_BYTES, FindOffset, Input, Settings, StartAt, StartOffset};
pub use status::{FileState, FileStatus, Order, PathFilter, StatusRequest, TailStatus, UnreadablePath};
pub use tailer::{Control, Tailer};
