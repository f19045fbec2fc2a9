//! A connection to the database that is made again when it breaks.

use super::tls::Tls;
use super::{PostgresSettings, StoreError};
use crate::store::postgres::schema;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, Error};

/// How long the server works on a statement, waits for a lock, and waits for a client in the middle of a transaction: a gateway
/// that was cut off holds nobody up for longer.
const SESSION: &str = "SET statement_timeout = '10s'; SET lock_timeout = '10s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET client_min_messages = 'warning'; \
    SELECT CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') \
        THEN set_config('synchronous_commit', 'on', false) END";
/// How long a job takes at most, also when nothing comes from the server any more.
const LONGEST_JOB: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Between attempts to connect. Jobs that come meanwhile fail at once.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often it is said that the database is away.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Where the database is, and how to reach it.
pub(super) struct Target {
    config: Config,
    tls: Tls,
}

/// A connection, or the wait for the next attempt.
pub(super) struct Link {
    target: Arc<Target>,
    open: Option<Open>,
    failure: Option<Failure>,
    told: Option<Instant>,
    /// Told when the server says that something has changed.
    changed: Arc<Notify>,
    /// Connections that were made.
    connects: u64,
}

struct Open {
    client: Client,
    /// Dropped with the connection, which ends it.
    _driver: JoinSet<()>,
}

/// The last attempt to connect has failed.
struct Failure {
    words: String,
    pause: Duration,
    retry_at: Instant,
}

impl Target {
    /// Reads the settings.
    ///
    /// # Errors
    /// In words, without the password.
    pub(super) fn new(settings: &PostgresSettings) -> Result<Target, StoreError> {
        // The error may quote the text, which may have the password.
        let mut config: Config = settings.url.parse().map_err(|_| {
            StoreError::Unusable(
                "the URL of the database cannot be read; write `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=require`, with \
                 percent-escapes in the password"
                    .to_owned(),
            )
        })?;
        if config.get_ssl_mode() == SslMode::Prefer {
            // An address takes the place of a name.
            let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
            let is_here = hosts.iter().all(is_this_machine)
                && addresses.iter().all(std::net::IpAddr::is_loopback)
                && !(hosts.is_empty() && addresses.is_empty());
            config.ssl_mode(if is_here { SslMode::Disable } else { SslMode::Require });
        }
        config
            .application_name("tidegate")
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives_idle(Duration::from_secs(15))
            .tcp_user_timeout(LONGEST_JOB)
            // Behind a failover the old server may still be there, and answer.
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let tls = Tls::new(config.get_ssl_mode() != SslMode::Disable, settings.ca_file.as_deref())?;
        Ok(Target { config, tls })
    }
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

impl Link {
    /// No connection yet.
    pub(super) fn new(target: Arc<Target>) -> Link {
        Link { target, open: None, failure: None, told: None, changed: Arc::default(), connects: 0 }
    }

    /// Told when the server says that something has changed; of a connection that listens.
    pub(super) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// How many connections were made: another number means that notifications may have been lost, and perhaps commits of a
    /// server that another has replaced.
    pub(super) fn connects(&self) -> u64 {
        self.connects
    }

    /// Works on the connection, which is made first where there is none. An error closes it, and with it what was begun.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; while the database is away, at once.
    pub(super) async fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        self.run_on(true, work).await
    }

    /// The same, also where the tables are not there yet.
    pub(super) async fn run_unprepared<T>(
        &mut self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        self.run_on(false, work).await
    }

    async fn run_on<T>(
        &mut self,
        is_prepared: bool,
        work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        if self.open.as_ref().is_none_or(|open| open.client.is_closed()) {
            self.connect(is_prepared).await?;
        }
        let Some(open) = &self.open else { return Err(super::stopped()) };
        let error = match tokio::time::timeout(LONGEST_JOB, work(&open.client)).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => words_of(&error),
            Err(_) => "it has not answered in time".to_owned(),
        };
        self.open = None;
        self.tell(&error);
        Err(StoreError::Unavailable(error))
    }

    async fn connect(&mut self, is_prepared: bool) -> Result<(), StoreError> {
        self.open = None;
        if let Some(failure) = self.failure.as_ref().filter(|failure| failure.retry_at > Instant::now()) {
            return Err(StoreError::Unavailable(failure.words.clone()));
        }
        let connected = tokio::time::timeout(LONGEST_JOB, self.try_connect(is_prepared)).await;
        let error = match connected.unwrap_or_else(|_| Err(timed_out())) {
            Ok(open) => {
                if self.failure.take().is_some() {
                    tracing::info!("the database of the fleet is there again");
                }
                (self.open, self.connects) = (Some(open), self.connects + 1);
                return Ok(());
            }
            Err(error) => error,
        };
        let pause = self.failure.take().map_or(FIRST_PAUSE, |before| (before.pause * 2).min(LONGEST_PAUSE));
        let words = match &error {
            StoreError::Unavailable(words) | StoreError::Unusable(words) => words.clone(),
            StoreError::Conflict | StoreError::NoMemory(_) => error.to_string(),
        };
        self.tell(&words);
        self.failure = Some(Failure { words, pause, retry_at: Instant::now() + pause });
        Err(error)
    }

    async fn try_connect(&self, is_prepared: bool) -> Result<Open, StoreError> {
        let unavailable = |error: Error| StoreError::Unavailable(words_of(&error));
        // On the heap, each time: connecting takes more room than all that comes after it.
        let connected = Box::pin(self.target.config.connect(self.target.tls.clone())).await;
        let (client, mut connection) = connected.map_err(unavailable)?;
        let changed = Arc::clone(&self.changed);
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    changed.notify_one();
                }
            }
        });
        client.batch_execute(SESSION).await.map_err(unavailable)?;
        if is_prepared {
            // Not made anew: where the tables are gone, nothing must be taken for an empty state.
            schema::check(&client).await?;
        }
        Ok(Open { client, _driver: driver })
    }

    fn tell(&mut self, error: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            self.told = Some(Instant::now());
            tracing::error!(error, "the database of the fleet does not work; agents are told to try again");
        }
    }
}

fn timed_out() -> StoreError {
    StoreError::Unavailable("it has not answered in time".to_owned())
}

/// An error with its causes, in words.
pub(super) fn words_of(error: &Error) -> String {
    if let Some(refused) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", refused.message(), refused.code().code());
    }
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        words.push_str(&format!(": {next}"));
        cause = next.source();
    }
    words
}
