//! Many clients at once, each with an address and a connection of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{Connection, RequestError, Response, SeriesModel, Target};
use tokio::runtime::Builder;

/// How long an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The clients' answers, by status; requests without an answer by the reason in words.
pub(crate) type Answers = BTreeMap<Result<u16, String>, u64>;

/// The address of the client with this number, all of them this machine's.
pub(crate) fn address_of(client: usize) -> IpAddr {
    let [.., high, low] = u32::try_from(client).unwrap().to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, 1, high, low))
}

/// Compressed bodies with all series of `model`, the one at `n` with the samples numbered `n`.
pub(crate) fn bodies(model: &SeriesModel, count: u64) -> Arc<Vec<Vec<u8>>> {
    let body = |number| {
        let (mut raw, mut body) = (Vec::new(), Vec::new());
        SampleBatch::of(model, model.series(), number, 1).encode(Version::V1, &mut raw);
        compress(&raw, &mut body);
        body
    };
    Arc::new((0..count).map(body).collect())
}

/// Connects as the client with this number, sends a body, and reads the answer.
pub(crate) async fn write_once(
    target: &Target,
    client: usize,
    body: &[u8],
) -> Result<Response, RequestError> {
    let mut connection = Connection::open_from(address_of(client), target, PATIENCE).await?;
    connection.write(target, Version::V1, body, PATIENCE).await
}

/// Enters an answer.
pub(crate) fn enter(answers: &mut Answers, answer: &Result<Response, RequestError>) {
    let what = answer.as_ref().map(|answer| answer.status).map_err(ToString::to_string);
    *answers.entry(what).or_default() += 1;
}

/// Runs clients to their end, on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
