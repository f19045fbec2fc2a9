//! A body that is sent while things happen may take its time, and holds no more than what has arrived.

use crate::body::{LOG, METADATA, NDJSON, PATH};
use crate::client::{answer, connect};
use crate::rig::{Rig, settings};
use bytes::Bytes;
use http::Request;
use std::time::Duration;
use tidegate_arena::PAGE;
use tidegate_http1::Settings;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Pauses are longer than those that other bodies may make, and each upload holds a page.
#[tokio::test]
async fn uploads_may_pause() {
    let brief = Duration::from_millis(200);
    let rig = Rig::with(1 << 30, Settings { body_stall: brief, body_grace: brief, ..settings() });
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: a\r\n{}: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        NDJSON.0, NDJSON.1
    );
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    rig.serve(async |address| {
        let mut uploads = Vec::new();
        for _ in 0..50 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("{head}{}", chunk(METADATA)).as_bytes()).await.unwrap();
            // A chunk that is promised, and comes later.
            stream.write_all(format!("{:x}\r\n{LOG}", 2 * LOG.len()).as_bytes()).await.unwrap();
            uploads.push(stream);
        }
        let used = || rig.arena.usage().shares.iter().map(|share| share.used).sum::<u64>();
        while used() < 50 * PAGE as u64 {
            tokio::task::yield_now().await;
        }
        // Others are refused after such a pause; so it has passed when one was.
        let mut other = TcpStream::connect(address).await.unwrap();
        other.write_all(b"POST /v1/logs HTTP/1.1\r\nHost: a\r\ncontent-type: application/x-protobuf\r\ncontent-length: 9\r\n\r\n1").await.unwrap();
        assert_eq!(answer(&mut other).await.status, 503);
        assert!(used() <= 50 * PAGE as u64, "{}", used());
        for stream in &mut uploads {
            stream.write_all(format!("{LOG}\r\n0\r\n\r\n").as_bytes()).await.unwrap();
            assert_eq!(answer(stream).await.status, 202);
        }
    })
    .await;
    assert_eq!(rig.books_of("elastic_apm").accepted, 50);
}

/// So it is over HTTP/2.
#[tokio::test]
async fn uploads_may_pause_over_http2() {
    let brief = Duration::from_millis(200);
    let rig = Rig::with(1 << 30, Settings { body_stall: brief, body_grace: brief, ..settings() });
    let request = |path: &str, content_type: &str| {
        Request::post(format!("http://test{path}")).header("content-type", content_type).body(()).unwrap()
    };
    rig.serve(async |address| {
        let mut client = connect(address).await.ready().await.unwrap();
        let (accepted, mut upload) = client.send_request(request(PATH, NDJSON.1), false).unwrap();
        upload.send_data(Bytes::from_static(METADATA.as_bytes()), false).unwrap();
        // Others are refused after such a pause; so it has passed when one was.
        let mut client = client.ready().await.unwrap();
        let other = request("/v1/logs", "application/x-protobuf");
        let (refused, mut other) = client.send_request(other, false).unwrap();
        other.send_data(Bytes::from_static(b"1"), false).unwrap();
        assert_eq!(refused.await.unwrap().status(), 503);
        upload.send_data(Bytes::from_static(LOG.as_bytes()), true).unwrap();
        assert_eq!(accepted.await.unwrap().status(), 202);
    })
    .await;
    assert_eq!(rig.books_of("elastic_apm").accepted, 1);
}
