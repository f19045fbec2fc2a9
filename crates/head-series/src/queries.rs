//! Asks for the numbers, again and again.

use crate::decoder::{DecodeError, Decoder};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_admission::HeadSeriesGate;
use tidegate_json_api::{Api, ApiError, ApiSettings};
use tidegate_limit::HeadSeriesCounts;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// After so many intervals without an answer the last numbers are dropped.
pub const KEPT_FOR: u32 = 10;
/// The most bytes of a response that are read.
const LONGEST_RESPONSE: usize = 16 << 20;
/// How long a query may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often failures are logged.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Where the numbers are, and how often they are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuerySettings {
    /// The server.
    pub api: ApiSettings,
    /// In PromQL; its result has a label `tenant`.
    pub query: String,
    /// From one query to the next.
    pub interval: Duration,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct QueryCounters {
    failed: AtomicU64,
    left_out: AtomicU64,
}

/// Why a query came to nothing.
#[derive(Debug, thiserror::Error)]
enum QueryError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("the answer has the status {0}")]
    Status(u16),
    #[error("the response has more than {LONGEST_RESPONSE} bytes")]
    TooLong,
    #[error("there was no whole answer within {TIMEOUT:?}")]
    Timeout,
}

impl QueryCounters {
    /// Queries that failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Tenants of the last answer for which there was no room.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }
}

/// The memory of a query besides the numbers: a line of the memory plan.
#[must_use]
pub const fn planned_bytes() -> usize {
    Api::BYTES + (32 << 10)
}

/// Keeps the numbers in `gate` up to date, by the settings as they are at a time; without settings there are no numbers. It never
/// ends by itself.
pub async fn run(
    mut settings: watch::Receiver<Option<QuerySettings>>,
    gate: Arc<HeadSeriesGate>,
    counters: Arc<QueryCounters>,
) {
    let mut failures = Failures::default();
    loop {
        let begin = Instant::now();
        let current = settings.borrow_and_update().clone();
        let wait = match current {
            None => {
                gate.series.forget_counts();
                None
            }
            Some(current) => {
                let mut counts = gate.series.collect();
                match Box::pin(ask(&current, &mut counts)).await {
                    Ok(()) => {
                        counters.left_out.store(counts.left_out(), Relaxed);
                        gate.series.set_counts(counts);
                        failures.ended();
                    }
                    Err(error) => {
                        counters.failed.fetch_add(1, Relaxed);
                        if failures.failed(&error) == KEPT_FOR {
                            gate.series.forget_counts();
                        }
                    }
                }
                Some(begin + current.interval)
            }
        };
        let next = async {
            match wait {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = next => {}
            changed = settings.changed() => if changed.is_err() {
                // Nobody can change them any more: the gateway stops.
                std::future::pending::<()>().await;
            },
        }
    }
}

async fn ask(settings: &QuerySettings, counts: &mut HeadSeriesCounts) -> Result<(), QueryError> {
    Box::pin(timeout(TIMEOUT, answer(settings, counts))).await.unwrap_or(Err(QueryError::Timeout))
}

async fn answer(settings: &QuerySettings, counts: &mut HeadSeriesCounts) -> Result<(), QueryError> {
    let query = utf8_percent_encode(&settings.query, NON_ALPHANUMERIC);
    let mut response = Api::new(settings.api.clone()).get(&format!("/api/v1/query?query={query}")).await?;
    if response.status != 200 {
        return Err(QueryError::Status(response.status));
    }
    let (mut decoder, mut read) = (Decoder::default(), 0_usize);
    while let Some(chunk) = response.chunk().await {
        let chunk = chunk?;
        read = read.saturating_add(chunk.len());
        if read > LONGEST_RESPONSE {
            return Err(QueryError::TooLong);
        }
        decoder.feed(&chunk, counts)?;
    }
    Ok(decoder.finish(counts)?)
}

/// Failures in a row, and when they were logged.
#[derive(Default)]
struct Failures {
    count: u32,
    logged: Option<Instant>,
}

impl Failures {
    fn failed(&mut self, error: &QueryError) -> u32 {
        self.count = self.count.saturating_add(1);
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            self.logged = Some(Instant::now());
            tracing::warn!(%error, "the query for the head series of tenants failed (`limits.head_series`); the last numbers hold for {KEPT_FOR} intervals");
        }
        self.count
    }

    fn ended(&mut self) {
        if self.count > 0 {
            tracing::info!("the query for the head series of tenants is answered again");
        }
        *self = Failures::default();
    }
}

#[cfg(test)]
mod tests {
    //! Promise: numbers come by a query and hold until the server is gone for long.

    use super::*;
    use tidegate_limit::{HeadSeries, HeadSeriesLimits, HeadSeriesState};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    const DEADLINE: Duration = Duration::from_secs(30);

    fn settings(port: u16, interval: Duration) -> QuerySettings {
        let api = ApiSettings {
            url: format!("http://127.0.0.1:{port}/prefix").parse().unwrap(),
            token: None,
            ca: None,
            certificate: None,
            server_name: None,
        };
        QuerySettings { api, query: "sum(x) by (tenant)".to_owned(), interval }
    }

    /// Answers one request with this status and body, and gives its first line. While the request waits, what was answered before has
    /// been entered: `look` sees that.
    async fn serve(listener: &TcpListener, status: u16, body: &str, look: impl FnOnce()) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        look();
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap().lines().next().unwrap().to_owned()
    }

    fn vector(series: u64) -> String {
        format!(
            r#"{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{"tenant":"a"}},"value":[1,"{series}"]}}]}}}}"#
        )
    }

    #[tokio::test]
    async fn numbers_hold_until_the_server_is_gone_for_long() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let limits = HeadSeriesLimits { default: 10, ..HeadSeriesLimits::default() };
        let gate = Arc::new(HeadSeriesGate::new(HeadSeries::new(limits)));
        let counters = Arc::new(QueryCounters::default());
        let (_sender, receiver) = watch::channel(Some(settings(port, Duration::from_millis(1))));
        let asking = run(receiver, Arc::clone(&gate), Arc::clone(&counters));
        let checked = async {
            let sees = |state| assert_eq!(gate.series.check("a"), state);
            let reached = HeadSeriesState::Reached { series: 10, limit: 10 };
            let line = serve(&listener, 200, &vector(10), || sees(HeadSeriesState::Unknown)).await;
            assert_eq!(line, "GET /prefix/api/v1/query?query=sum%28x%29%20by%20%28tenant%29 HTTP/1.1");
            serve(&listener, 500, "", || sees(reached)).await;
            for _ in 2..=KEPT_FOR {
                serve(&listener, 200, "{}", || sees(reached)).await;
            }
            serve(&listener, 200, &vector(9), || sees(HeadSeriesState::Unknown)).await;
            serve(&listener, 503, "", || sees(HeadSeriesState::Below)).await;
            serve(&listener, 200, "", || assert_eq!(counters.failed(), u64::from(KEPT_FOR) + 1)).await;
        };
        tokio::select! {
            () = asking => unreachable!("it asks for ever"),
            checked = timeout(DEADLINE, checked) => checked.unwrap(),
        }
    }

    /// Settings that are removed stop the queries, and nobody is limited.
    #[tokio::test]
    async fn a_change_of_settings_holds_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let limits = HeadSeriesLimits { default: 10, ..HeadSeriesLimits::default() };
        let gate = Arc::new(HeadSeriesGate::new(HeadSeries::new(limits)));
        let (sender, receiver) = watch::channel(None);
        let asking = run(receiver, Arc::clone(&gate), Arc::default());
        let hour = Duration::from_secs(3600);
        let checked = async {
            sender.send(Some(settings(port, hour))).unwrap();
            serve(&listener, 200, &vector(10), || {}).await;
            sender.send(Some(QuerySettings { query: "y".to_owned(), ..settings(port, hour) })).unwrap();
            serve(&listener, 200, &vector(11), || {}).await;
            sender.send(None).unwrap();
            while gate.series.check("a") != HeadSeriesState::Unknown {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = asking => unreachable!("it asks for ever"),
            checked = timeout(DEADLINE, checked) => checked.unwrap(),
        }
    }
}
