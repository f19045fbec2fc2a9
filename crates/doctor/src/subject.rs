//! What is known of a gateway before anything is looked at: plain data from its configuration.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;
use tidegate_sinks::Probe;

/// A gateway to be examined.
#[derive(Debug)]
pub struct Subject {
    /// The program that examines it, which should be the one that runs.
    pub program: Program,
    /// Its configuration.
    pub configuration: Configuration,
    /// What the configuration says; `None` if it cannot be read.
    pub setup: Option<Setup>,
    /// Secrets that must not be shown, as they are written in the configuration.
    pub secrets: Vec<String>,
    /// The contents of files that the configuration inserts: nothing shows them.
    pub contents: Vec<String>,
    /// The values of environment variables in the configuration. They may be secrets or names of hosts, so an archive does not have
    /// them.
    pub variables: Vec<String>,
}

/// The program.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its version, with the commit.
    pub version: String,
    /// The date of its sources, where that is known.
    pub date: Option<SystemTime>,
}

/// The configuration, as far as the program has judged it.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    /// Its file; `None` for the default configuration.
    pub file: Option<PathBuf>,
    /// Errors that prevent a start: each with its place and what to do.
    pub errors: Vec<String>,
    /// What somebody should know of it although it is valid.
    pub notes: Vec<String>,
    /// The configuration in effect, with secrets masked; empty if it cannot be read.
    pub effective: String,
}

/// What a valid configuration says.
#[derive(Debug)]
pub struct Setup {
    /// The demand for memory.
    pub memory: Memory,
    /// The demand for open files.
    pub files: Files,
    /// The data folder.
    pub data: DataFolder,
    /// Where it listens.
    pub listeners: Vec<Listener>,
    /// The admin address.
    pub admin: SocketAddr,
    /// Certificates, keys and authorities in files.
    pub certificates: Vec<Certificate>,
    /// The endpoints of sinks; or why there are none.
    pub peers: Vec<Result<Peer, String>>,
    /// Sinks with more endpoints than are asked, and how many of them are left out.
    pub left_out: Vec<(String, usize)>,
    /// The names of the sinks.
    pub sinks: Vec<String>,
}

/// The demand for memory, in bytes.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The bound on resident memory.
    pub budget: u64,
    /// Where the bound comes from, in a sentence.
    pub origin: String,
    /// Whether the configuration sets it; otherwise it follows the control group of this process.
    pub is_configured: bool,
    /// What the kernel needs beside it.
    pub kernel: u64,
    /// Address space that the gateway reserves.
    pub address_space: u64,
}

/// The demand for open files.
#[derive(Debug, Clone)]
pub struct Files {
    /// How many everything that is configured needs.
    pub needed: u64,
    /// The hard limit of the doctor's process.
    pub allowed: u64,
    /// Why so few are too few to start.
    pub error: Option<String>,
    /// What is less than configured for want of files.
    pub shortage: Option<String>,
    /// Whether log files are followed, with inotify.
    pub follows_files: bool,
}

/// The data folder and what is kept elsewhere.
#[derive(Debug, Clone)]
pub struct DataFolder {
    /// The folder.
    pub path: PathBuf,
    /// The journal.
    pub journal: Journal,
    /// The lakes.
    pub lakes: Vec<Lake>,
    /// Other folders.
    pub others: Vec<Folder>,
}

/// The journal in the data folder.
#[derive(Debug, Clone)]
pub struct Journal {
    /// The most that it may take of the disk, in bytes.
    pub quota: u64,
    /// The length of a segment, in bytes.
    pub segment: u64,
    /// When a record counts as written.
    pub durability: Durability,
}

/// When a record counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the disk has it.
    Fsync,
    /// When the kernel has it.
    PageCache,
    /// When every sink has delivered it: it is not on disk.
    Memory,
}

/// The folder of a sink of type `lake`.
#[derive(Debug, Clone)]
pub struct Lake {
    /// The sink.
    pub sink: String,
    /// The folder.
    pub path: PathBuf,
    /// The most that it may take of the disk, in bytes.
    pub retention: u64,
}

/// Another folder that the gateway writes.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The setting that names it.
    pub setting: String,
    /// Where it is.
    pub path: PathBuf,
    /// The most that it may take of the disk, in bytes.
    pub quota: u64,
}

/// An address where the gateway listens.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The setting that says so.
    pub setting: String,
    /// The address.
    pub address: Address,
}

/// A local address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// UDP.
    Udp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// Files of a certificate.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The setting that names it.
    pub setting: String,
    /// The file with the certificate, or with those of authorities.
    pub file: PathBuf,
    /// The key; `None` for authorities.
    pub key: Option<PathBuf>,
    /// The address where it is shown; `None` for one that is not shown to clients.
    pub shown_at: Option<SocketAddr>,
}

/// An endpoint of a sink.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The sink.
    pub sink: String,
    /// Its type.
    pub kind: &'static str,
    /// What it is asked.
    pub probe: Probe,
}
