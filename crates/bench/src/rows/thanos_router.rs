//! Thanos' own router, to compare with.

use super::router::{Routing, receive};
use super::traffic::Traffic;
use crate::Failure;
use crate::figure::Bench;
use crate::subject::{Folder, Used, free_address, memory_of, used_by};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tidegate_load::{RunLimit, ThanosIngestors};

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long after its answers it may be busy: it answers once a quorum has taken a request.
const TAIL: Duration = Duration::from_millis(300);

/// A running `thanos receive` that only routes. Dropping it ends it.
pub(super) struct ThanosRouter {
    process: Child,
    address: SocketAddr,
    _folder: Folder,
}

impl ThanosRouter {
    pub(super) fn start(
        bench: &Bench,
        program: &Path,
        routing: &Routing,
        ingestors: &ThanosIngestors,
    ) -> Result<ThanosRouter, Failure> {
        let folder = Folder::new(bench)?;
        let ring = folder.path().join("hashrings.json");
        let text = serde_json::json!([{ "endpoints": ingestors.addresses() }]).to_string();
        std::fs::write(&ring, text).map_err(|error| format!("writing {}: {error}", ring.display()))?;
        let address = free_address()?;
        let process = Command::new(program)
            .args([
                "receive",
                "--label=replica=\"router\"",
                "--receive.hashrings-algorithm=ketama",
                "--log.level=error",
            ])
            .arg(format!("--tsdb.path={}", folder.path().join("tsdb").display()))
            .arg(format!("--remote-write.address={address}"))
            .arg(format!("--http-address={}", free_address()?))
            .arg(format!("--grpc-address={}", free_address()?))
            .arg(format!("--receive.capnproto-address={}", free_address()?))
            .arg(format!("--receive.hashrings-file={}", ring.display()))
            .arg(format!("--receive.replication-factor={}", routing.replication))
            .arg(format!("--receive.grpc-compression={}", routing.compression))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("starting {}: {error}", program.display()))?;
        let mut router = ThanosRouter { process, address, _folder: folder };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = router.process.try_wait() {
                return Err(Failure(format!("{} ended at once: {status}", program.display())));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Failure(format!("{} was not listening within {PATIENCE:?}", program.display())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // It listens before it has read its hashrings.
        std::thread::sleep(Duration::from_secs(2));
        Ok(router)
    }

    /// The samples sent, the processor time for them, and how many million were sent a second.
    pub(super) fn load(&self, traffic: &Traffic, time: RunLimit) -> Result<(u64, Used, f64), Failure> {
        let before = used_by(&self.process)?;
        let report = traffic.send(&receive(self.address), time)?;
        std::thread::sleep(TAIL);
        let used = used_by(&self.process)?.since(before);
        Ok((report.samples, used, report.samples as f64 / report.elapsed.as_secs_f64() / 1e6))
    }

    /// Its largest resident memory, in bytes.
    pub(super) fn peak(&self) -> Result<f64, Failure> {
        memory_of(&self.process, "VmHWM")
    }
}

impl Drop for ThanosRouter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
