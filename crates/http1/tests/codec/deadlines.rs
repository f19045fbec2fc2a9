//! Every wait ends: idle, head, body, memory, and clients that do not take their answer. The clock is
//! paused, so these tests take no time.

use crate::pipe::{Client, pipe};
use crate::record::{Record, Run, outcome, peer, server, server_with};
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{PAGE, Share};
use tidegate_http1::{ConnectionEnd, Refusal, Server, Settings};
use tokio::time::{Instant, sleep};

/// Runs one connection against what `script` does, and says how long it lasted.
fn timed<F: Future<Output = ()>>(
    server: &Arc<Server<Record>>,
    script: impl FnOnce(Client) -> F,
) -> (Run, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let (client, pipe) = pipe();
    let begun_and_ended = async {
        let begun = Instant::now();
        let ended = server.serve(pipe, peer()).await;
        (ended, begun.elapsed())
    };
    let both = async { tokio::join!(begun_and_ended, script(client.clone())) };
    let ((ended, lasted), ()) = runtime.unwrap().block_on(both);
    (outcome(server, &client, ended), lasted)
}

/// Whether `lasted` is `seconds`, but for the timer's resolution.
#[track_caller]
fn assert_seconds(lasted: Duration, seconds: f64) {
    assert!((lasted.as_secs_f64() - seconds).abs() < 0.02, "{lasted:?} instead of {seconds} s");
}

const HEAD: &str = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n";

/// A connection without a request is closed without a word, and each request buys it a new wait.
#[test]
fn idle_connections_are_closed() {
    let (run, lasted) = timed(&server(Settings::default()), |client| async move {
        sleep(Duration::from_secs(60)).await;
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    });
    assert_eq!((run.ended, run.statuses), (ConnectionEnd::Idle, vec![204]));
    assert_seconds(lasted, 150.0);
}

/// A head has its time from its first byte on, however regularly more of it arrives.
#[test]
fn slow_heads_are_cut() {
    let (run, lasted) = timed(&server(Settings::default()), |client| async move {
        sleep(Duration::from_secs(30)).await;
        for byte in HEAD.as_bytes().iter().take(30) {
            client.send([*byte]);
            sleep(Duration::from_secs(1)).await;
        }
    });
    assert_eq!((run.ended, run.statuses), (ConnectionEnd::Refused, vec![408]));
    assert_eq!(run.refused, [Refusal::HeadTooSlow]);
    // And one second for the client to read the answer.
    assert_seconds(lasted, 30.0 + 10.0 + 1.0);
}

/// A body that stops arriving is cut.
#[test]
fn stalled_bodies_are_cut() {
    let (run, lasted) = timed(&server(Settings::default()), |client| async move {
        client.send(HEAD);
        client.send(vec![0; 900_000]);
    });
    assert_eq!((run.ended, run.refused), (ConnectionEnd::Refused, vec![Refusal::BodyTooSlow]));
    assert_seconds(lasted, 5.0 + 1.0);
}

/// A body that arrives a byte a second is cut after the grace, for all its bytes.
#[test]
fn trickling_bodies_are_cut() {
    let (run, lasted) = timed(&server(Settings::default()), |client| async move {
        client.send(HEAD);
        for _ in 0..20 {
            client.send("x");
            sleep(Duration::from_secs(1)).await;
        }
    });
    assert_eq!((run.ended, run.statuses), (ConnectionEnd::Refused, vec![408]));
    assert_seconds(lasted, 5.0 + 1.0);
}

/// A body that keeps the rate may take long, but not for ever.
#[test]
fn bodies_that_keep_the_rate_have_their_time() {
    let send = |rate: usize| {
        move |client: Client| async move {
            client.send(HEAD);
            for _ in 0..1_000_000_usize.div_ceil(rate) {
                sleep(Duration::from_secs(1)).await;
                client.send(vec![0; rate]);
            }
            client.close();
        }
    };
    let (run, lasted) = timed(&server(Settings::default()), send(20_000));
    assert_eq!((run.ended, run.statuses), (ConnectionEnd::ByClient, vec![204]));
    assert_seconds(lasted, 50.0);
    let (run, lasted) = timed(&server(Settings::default()), send(2_000));
    assert_eq!((run.ended, run.refused), (ConnectionEnd::Refused, vec![Refusal::BodyTooSlow]));
    assert_seconds(lasted, 60.0 + 1.0);
}

/// Memory that is short is waited for, and a request that got none is told to come back.
#[test]
fn memory_is_waited_for_and_not_for_ever() {
    for (freed_after, statuses, lasts) in [(1, vec![204], 1.0), (10, vec![503], 3.0)] {
        let settings = Settings::default();
        let server = server_with(settings, 1 << 20);
        let all = server.arena().try_charge(Share::Egress, 1 << 20).unwrap();
        let (run, lasted) = timed(&server, |client| async move {
            client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            sleep(Duration::from_secs(freed_after)).await;
            drop(all);
        });
        assert_eq!(run.statuses, statuses);
        assert_seconds(lasted, lasts);
    }
}

/// The same for a body, whose memory is charged whole before it is asked for.
#[test]
fn bodies_wait_for_their_memory_before_they_are_asked_for() {
    for (freed_after, ended) in [(1, ConnectionEnd::Answered), (10, ConnectionEnd::Refused)] {
        let server = server_with(Settings::default(), 1 << 20);
        let most = server.arena().try_charge(Share::Egress, (1 << 20) - 2 * PAGE as u64).unwrap();
        let (run, _) = timed(&server, |client| async move {
            client.send("POST /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n");
            sleep(Duration::from_millis(900)).await;
            assert_eq!(client.answers(), b"");
            sleep(Duration::from_secs(freed_after)).await;
            drop(most);
            sleep(Duration::from_millis(1)).await;
            if client.answers().starts_with(b"HTTP/1.1 100 ") {
                client.send(vec![0; 100_000]);
            }
        });
        assert_eq!(run.ended, ended);
        assert_eq!(run.statuses, if ended == ConnectionEnd::Answered { vec![100, 204] } else { vec![503] });
    }
}

/// The codec drains a refused client's bytes only within limits of rate, time and size.
#[test]
fn a_refused_body_is_drained_within_bounds() {
    let refused = "POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 900000000\r\n\r\n";
    let send = |times: u32, bytes: usize| {
        move |client: Client| async move {
            client.send(refused);
            for _ in 0..times {
                sleep(Duration::from_millis(900)).await;
                client.send(vec![0; bytes]);
            }
        }
    };
    for (times, bytes, settings, lasts) in [
        (100, 1 << 10, Settings::default(), 1.0),
        (5, 32 << 10, Settings::default(), 5.0 * 0.9 + 1.0),
        (100, 32 << 10, Settings::default(), 30.0),
        (100, 32 << 10, Settings { linger_bytes: 128 << 10, ..Settings::default() }, 4.0 * 0.9),
    ] {
        let (run, lasted) = timed(&server(settings), send(times, bytes));
        assert_eq!((run.ended, run.statuses), (ConnectionEnd::Refused, vec![413]));
        assert_seconds(lasted, lasts);
    }
}

/// A client that does not take its answer holds it for a while only, and loses nothing if it takes it late.
#[test]
fn answers_wait_for_slow_readers() {
    let large = "GET /large HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let (run, lasted) = timed(&server(Settings::default()), |client| async move {
        client.take_at_most(10);
        client.send(large);
        sleep(Duration::from_secs(5)).await;
        client.take_at_most(50_000);
        sleep(Duration::from_secs(4)).await;
        client.take_at_most(usize::MAX);
    });
    assert_eq!((run.ended, run.statuses), (ConnectionEnd::Answered, vec![200]));
    assert_seconds(lasted, 9.0);

    let server = server(Settings::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let (client, pipe) = pipe();
    client.take_at_most(5_000);
    client.send(large);
    assert_eq!(runtime.unwrap().block_on(server.serve(pipe, peer())), ConnectionEnd::Lost);
}

/// After so many requests a connection ends, and the client is told so with the last answer.
#[test]
fn connections_end_after_their_requests() {
    let (run, _) = timed(&server(Settings { max_requests: 2, ..Settings::default() }), |client| async move {
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(5));
        sleep(Duration::from_millis(1)).await;
        let answers = String::from_utf8(client.answers()).unwrap();
        assert_eq!(answers.matches("Connection: close").count(), 1, "{answers}");
    });
    assert_eq!((run.ended, run.statuses), (ConnectionEnd::Answered, vec![204, 204]));
}
