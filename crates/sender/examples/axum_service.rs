//! A web service that reports each request: a span that continues the caller's trace, and what it logs.
//!
//!     OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 cargo run --example axum_service --features tracing
//!     curl http://127.0.0.1:8080/hello/you
//!
//! It runs until its input ends (Ctrl-D). No runtime is lent to the sender, and none can be blocked by it.
#![allow(clippy::print_stdout, reason = "an example")]

use axum::extract::{MatchedPath, Path, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::{Router, routing::get};
use std::io::Read;
use std::time::Duration;
use tidegate_sender::{Builder, Layer};
use tracing::Instrument;
use tracing_subscriber::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sender = Builder::from_env().service("hello").start()?;
    tracing_subscriber::registry().with(Layer::new(sender.clone())).init();

    let service = Router::new().route("/hello/{name}", get(hello)).layer(from_fn(reported));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, service).with_graceful_shutdown(end_of_input()).await?;

    // Waiting is fine here: nothing else is left to do.
    println!("{} events left", sender.shutdown(Duration::from_secs(10)).events);
    Ok(())
}

async fn hello(Path(name): Path<String>) -> String {
    tracing::info!(name, "greeting");
    format!("Hello, {name}!\n")
}

async fn reported(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str).to_owned();
    let parent = request.headers().get("traceparent").and_then(|header| header.to_str().ok()).unwrap_or("");
    let span = tracing::info_span!(
        "request",
        otel.kind = "server",
        otel.name = %format_args!("{} {route}", request.method()),
        traceparent = parent,
        http.request.method = %request.method(),
        url.path = request.uri().path(),
        http.response.status_code = tracing::field::Empty,
        otel.status_code = tracing::field::Empty,
    );
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    if response.status().is_server_error() {
        span.record("otel.status_code", "error");
    }
    response
}

async fn end_of_input() {
    let ended = tokio::task::spawn_blocking(|| {
        let mut some = [0; 64];
        while std::io::stdin().read(&mut some).is_ok_and(|read| read > 0) {}
    });
    let _ = ended.await;
}
