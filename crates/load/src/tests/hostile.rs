//! Hostile bodies are what they claim not to be, and hostile clients do what they say.

use std::time::Duration;

use crate::hostile::{bomb, churn, copy_out_of_range, idle, most_compressed, slow_loris, with_preamble};
use crate::remote_write::compress;
use crate::{Behaviour, Check, VerifyingReceiver};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn decoded(body: &[u8]) -> Option<Vec<u8>> {
    snap::raw::Decoder::new().decompress_vec(body).ok()
}

/// The bomb is small, claims gigabytes, and could not fill them.
#[test]
fn the_bomb_lies() {
    let bomb = bomb();
    assert!((320..=330).contains(&bomb.len()), "{}", bomb.len());
    assert_eq!(snap::raw::decompress_len(&bomb).unwrap(), 3 << 30);
    let truthful = decoded(&with_preamble(&bomb, 1 + 107 * 64)).unwrap();
    assert!(truthful.iter().all(|byte| *byte == b'a'));
}

/// The best compression there is keeps its word: 21 times.
#[test]
fn the_most_compressed_body_is_valid() {
    for len in [0, 1, 2, 64, 65, 66, 1_000_000] {
        let body = most_compressed(len);
        assert_eq!(decoded(&body).unwrap(), vec![b'a'; len as usize], "{len}");
    }
    assert!(most_compressed(1_000_000).len() < 47_000);
}

/// A preamble can be made to lie in both directions; a copy can reach before the beginning.
#[test]
fn lies_are_lies() {
    let mut honest = Vec::new();
    compress(&[7; 10_000], &mut honest);
    assert_eq!(decoded(&with_preamble(&honest, 10_000)).unwrap(), [7; 10_000]);
    for claimed in [0, 9_999, 10_001] {
        assert_eq!(decoded(&with_preamble(&honest, claimed)), None);
    }
    assert_eq!(
        snap::raw::decompress_len(&with_preamble(&honest, u64::from(u32::MAX))).unwrap(),
        u32::MAX as usize
    );
    assert_eq!(snap::raw::decompress_len(&copy_out_of_range()).unwrap(), 68);
    assert_eq!(decoded(&copy_out_of_range()), None);
}

/// Slow clients are slow until they are answered or given up; churning ones come and go.
#[test]
fn hostile_clients_behave_as_configured() {
    let sink = VerifyingReceiver::start(Behaviour::Healthy, Check::Everything).unwrap();
    let request = b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n....";
    let (pause, limit) = (Duration::from_millis(1), Duration::from_secs(60));
    runtime().block_on(async {
        assert_eq!(idle(sink.address(), 5).await.unwrap().len(), 5);
        let slow = slow_loris(sink.address(), 3, request, pause, limit).await;
        assert_eq!((slow.connected, slow.not_connected, slow.answered, slow.closed), (3, 0, 3, 0));
        let churned = churn(sink.address(), 500, b"GET", Duration::from_millis(500)).await;
        assert!(churned.connected > 1 && churned.not_connected == 0, "{churned:?}");
    });
    assert_eq!(sink.stop().requests[&415], 3);
}
