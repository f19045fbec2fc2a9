//! Sends.
mod class;
mod config;
mod counters;
mod encode;
mod gzip;
mod http;
mod random;
mod record;
mod ring;
mod sender;
mod sync;
mod worker;
pub use class::{Class, Reason, Signal};
pub use config::{Builder, Compression, ConfigError, Protocol, SETTINGS, Setting};
pub use counters::Stats;
pub use record::*;
pub use sender::{Left, Memory, Refused, Sender};
