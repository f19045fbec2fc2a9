//! The example in C is compiled against the header, linked with the library, run, and seen from the peer.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

#[path = "../../sender/tests/all/oracle.rs"]
mod oracle;
#[path = "../../sender/tests/all/peer.rs"]
mod peer;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that this test's own executable is in: libraries are built beside it.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

#[test]
fn the_example_in_c_reports_its_jobs() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = built().join("tidegate-sender-c-example");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(here.join("include"))
        .arg(here.join("examples/worker.c"))
        .arg(built().join("libtidegate_sender_c.a"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("a C compiler is needed, as for building the rest");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let peer = peer::Peer::new();
    let run = Command::new(&program)
        .env_clear()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", peer.url())
        .env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.starts_with("111 events sent, 0 dropped, 0 left"), "{said}");

    let spans = peer.spans();
    assert_eq!((spans.len(), peer.logs().len(), peer.metrics().len()), (100, 10, 1));
    assert!(spans.iter().all(|span| span.name == "job" && span.kind == 5 && span.attributes.len() == 2));
    assert_eq!(
        spans.iter().filter(|span| span.status.as_ref().is_some_and(|status| status.code == 2)).count(),
        10
    );
    assert_eq!(oracle::text(&spans[0].attributes, "job.queue"), Some("mail"));

    let grpc = Command::new(&program)
        .env_clear()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", peer.url())
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .output()
        .unwrap();
    let warned = String::from_utf8_lossy(&grpc.stderr);
    assert!(grpc.status.success() && warned.contains("`grpc` is not supported"), "{warned}");
    assert_eq!(peer.spans().len(), 200);

    let wrong =
        Command::new(&program).env_clear().env("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere").output().unwrap();
    assert!(!wrong.status.success());
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("`nowhere` has no scheme"));
}

#[test]
fn null_pointers_are_an_error() {
    use tidegate_sender_c as c;
    // SAFETY: NULL is what these functions are asked to bear.
    unsafe {
        assert_eq!(c::tidegate_sender_span(std::ptr::null(), std::ptr::null()), c::TIDEGATE_WRONG);
        assert_eq!(c::tidegate_sender_flush(std::ptr::null(), 0, std::ptr::null_mut()), c::TIDEGATE_WRONG);
        assert_eq!(c::tidegate_sender_stats(std::ptr::null(), std::ptr::null_mut()), c::TIDEGATE_WRONG);
        c::tidegate_new_span_id(std::ptr::null_mut());
        c::tidegate_sender_free(std::ptr::null_mut());
    }
}
