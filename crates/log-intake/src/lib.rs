//! How sources that read or listen by themselves give log records to the gate.
//!
//! A source of HTTP has a client that waits for an answer and sends again. A source that reads a file or receives
//! datagrams has nobody who does that: so it waits itself. A [`LogIntake`] gives it memory to encode a batch in, waits
//! while nothing can be accepted, and appends the batch. [`TaskGroup`] runs the tasks of such a source and knows when
//! they have ended; a [`ConnectionService`] is served by the gateway's acceptor.
//!
//! Promises:
//! - a batch that [`append`](LogIntake::append) gave `Ok` for is durable;
//! - memory is charged before it is used, and a source that holds none waits for it in order of arrival;
//! - every batch is one request in the books of its source, accepted or refused, under the source's tenant and limits;
//! - nothing spins: a wait ends with memory, with the time that the gate asks for, or with the end of the source.
//!
//! Left to others: encoding the records (`wire`), reading them (the sources), and how many bytes a source holds at a
//! time.

mod connection;
mod intake;
mod task_group;

pub use connection::{ConnectionService, Serving, read, readable, write_all};
pub use intake::{IntakeError, LogBatch, LogIntake, Stopping};
pub use task_group::{RunningTask, TaskGroup};
pub use tidegate_http1::{Shutdown, Stream};
