//! Sends.
mod class;
#[cfg(any(feature = "tracing", feature = "log", feature = "opentelemetry"))]
mod clock;
mod config;
mod counters;
mod encode;
mod gzip;
mod http;
#[cfg(feature = "tracing")]
mod layer;
#[cfg(feature = "log")]
mod logger;
#[cfg(feature = "opentelemetry")]
pub mod opentelemetry;
mod random;
mod record;
mod ring;
mod sender;
mod sync;
mod worker;
pub use class::{Class, Reason, Signal};
pub use config::{Builder, Compression, ConfigError, Protocol, SETTINGS, Setting};
pub use counters::Stats;
#[cfg(feature = "tracing")]
pub use layer::{EventsAs, Layer};
#[cfg(feature = "log")]
pub use logger::Logger;
pub use record::*;
pub use sender::{Left, Memory, Refused, Sender};
