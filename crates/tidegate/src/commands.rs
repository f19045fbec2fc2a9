//! The commands, one file each.

mod admin;
pub(crate) mod check;
mod confine;
pub(crate) mod connect;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod elasticsearch;
pub(crate) mod file;
pub(crate) mod fleet;
pub(crate) mod import;
pub(crate) mod journal;
pub(crate) mod lake;
mod orders;
pub(crate) mod pipeline;
pub(crate) mod plan;
pub(crate) mod print;
pub(crate) mod replay;
mod request_sender;
pub(crate) mod ring;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod search_process;
pub(crate) mod tap;
pub(crate) mod test;
pub(crate) mod token;
pub(crate) mod top;
