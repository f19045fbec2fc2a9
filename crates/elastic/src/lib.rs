//! Elastic's two shapes of telemetry, documents and intake events, translated from and to OTLP. No I/O.
//!
//! [`documents`] writes `_bulk` bodies from OTLP and from intake events, and reads documents as OTLP logs. [`templates`] are
//! for the indexes of what it writes. [`intake`] says intake events in OTLP.
//!
//! Promises:
//! - everything streams from views over borrowed bytes to an output that the caller has paid for: nothing is
//!   allocated per document, and no tree is built;
//! - nothing that comes from outside can make it panic, recurse without a bound or write without a bound;
//! - what a shape cannot say is counted, never left out in silence.
//!
//! Left to others: checking bodies before they are read here (`wire`), paying for memory, sending (`sinks`).
#![deny(clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::indexing_slicing, reason = "a test may panic"))]

pub mod documents;
pub mod intake;
pub mod templates;

use tidegate_wire::json::write as json;
