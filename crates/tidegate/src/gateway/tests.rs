//! Promises: a gateway leaves no core dump; and what must not end is missed under its own name.

use super::*;
use rustix::process::{DumpableBehavior, dumpable_behavior};
use std::sync::mpsc::{Receiver, sync_channel};

/// How long an event may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway with this configuration, and what its upkeep misses in place of the end of the process.
fn started(config: Config) -> (Gateway, Receiver<String>) {
    let (tell, told) = sync_channel(1);
    let leave = move |gone: &str| tell.send(gone.to_owned()).unwrap();
    (Gateway::start_watched(config, leave).unwrap_or_else(|Failure(error)| panic!("{error}")), told)
}

/// A configuration with all listeners that there are, on ports of the system's choice.
fn on_all_listeners(data: &std::path::Path) -> Config {
    let socket = data.join("socket");
    let text = format!(
        "memory: 256MiB\n\
         data: {}\n\
         listen: {{http: 127.0.0.1:0, grpc: 127.0.0.2:0, elasticsearch: 127.0.0.1:0, apm: 127.0.0.1:0, \
         admin: 127.0.0.1:0, unix: {}}}\n",
        data.join("data").display(),
        socket.display(),
    );
    tidegate_config::parse("test", &text, &|_| None).unwrap()
}

#[test]
fn a_gateway_leaves_no_core_dump() {
    forbid_core_dumps();
    assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
}

#[test]
fn an_acceptor_that_ends_is_missed_under_the_name_of_its_setting() {
    let settings =
        ["listen.http", "listen.grpc", "listen.elasticsearch", "listen.apm", "listen.unix", "listen.admin"];
    for setting in settings {
        let dir = tempfile::tempdir().unwrap();
        let (gateway, told) = started(on_all_listeners(dir.path()));
        assert_eq!(gateway.acceptors.len(), settings.len());
        let acceptor = gateway.acceptors.iter().find(|acceptor| acceptor.setting() == setting).unwrap();
        acceptor.abort();
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), format!("the acceptor of `{setting}`"));
        gateway.stop();
    }
}
