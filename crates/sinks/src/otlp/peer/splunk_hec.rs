//! Splunk's HTTP Event Collector: sends events, and waits until they are indexed where that is asked for.
//!
//! A request with the header `X-Splunk-Request-Channel` is answered with an `ackId`; `/services/collector/ack` says later which
//! ids are indexed. An answer counts from then on, so a request is in flight, with its memory, until it is indexed. What is
//! not indexed in time, or was not when the server restarted, is sent again: delivery is at least once.
//!
//! Specification: "About HTTP Event Collector Indexer Acknowledgment" and "Troubleshoot HTTP Event Collector",
//! <https://docs.splunk.com/Documentation/Splunk/latest/Data/AboutHECIDXAck>.

mod channel;
mod response;

use super::{Peer, Request};
use crate::delivery::EndpointError;
use crate::http_peer::chain;
use crate::otlp::answer::OtlpAnswer;
use crate::otlp::settings::SplunkHec;
use bytes::Bytes;
use channel::{Channel, Channels, LostChannel, WaitState, Waiting};
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request as HttpRequest, Uri};
use response::HecResponse;
use std::time::Duration;
use tokio::time::Instant;

const CHANNEL: HeaderName = HeaderName::from_static("x-splunk-request-channel");
const EVENT_PATH: &str = "/services/collector/event";
const ACK_PATH: &str = "/services/collector/ack";

/// How requests to one endpoint are acknowledged.
pub(super) struct Acknowledgement {
    uri: Uri,
    interval: Duration,
    timeout: Duration,
    channels: Channels,
}

impl Acknowledgement {
    /// For the endpoint at `uri`, if it is wanted.
    pub(super) fn new(uri: &Uri, settings: &SplunkHec) -> Result<Option<Acknowledgement>, EndpointError> {
        let Some(wanted) = settings.acknowledgement else { return Ok(None) };
        let uri = path(uri, ACK_PATH)?;
        let (interval, timeout) = (wanted.interval, wanted.timeout);
        Ok(Some(Acknowledgement { uri, interval, timeout, channels: Channels::new() }))
    }
}

/// The URL for events below `uri`.
pub(super) fn event_uri(uri: &Uri) -> Result<Uri, EndpointError> {
    path(uri, EVENT_PATH)
}

/// `uri` with `tail` behind its path, which may have that already.
fn path(uri: &Uri, tail: &str) -> Result<Uri, EndpointError> {
    let base = uri.path().trim_end_matches('/');
    let base = ["/services/collector/event", "/services/collector"]
        .into_iter()
        .find_map(|known| base.strip_suffix(known))
        .unwrap_or(base);
    let mut parts = uri.clone().into_parts();
    let path = format!("{base}{tail}").parse();
    parts.path_and_query = Some(path.map_err(|_| EndpointError::Address(uri.clone()))?);
    Uri::from_parts(parts).map_err(|_| EndpointError::Address(uri.clone()))
}

impl Peer {
    /// Sends events and waits for the answer; with acknowledgement, until they are indexed.
    pub(super) async fn send_events(&self, request: &Request) -> OtlpAnswer {
        let Some(acknowledgement) = &self.acknowledgement else {
            return match self.post(|| self.head(request)).await {
                Ok(response) => response.answer(),
                Err(words) => OtlpAnswer::lost(words),
            };
        };
        let channel = acknowledgement.channels.current();
        let head = || {
            let mut head = self.head(request)?;
            head.headers_mut().insert(CHANNEL, channel.name().clone());
            Some(head)
        };
        let open = channel.begin();
        let response = match self.post(head).await {
            Ok(response) => response,
            // The server may have restarted: what it numbers from now on is something else, and must not answer for
            // requests that wait on this channel, which is lost.
            Err(words) => return OtlpAnswer::lost(words),
        };
        if response.is_bad_channel() {
            acknowledgement.channels.replace(&channel);
        }
        if !response.status.is_success() {
            open.refused();
            return response.answer();
        }
        let Some(id) = response.ack_id else {
            open.refused();
            let words = "the answer has no ackId: enable indexer acknowledgment for the token, or set `acknowledgement: false`";
            // They are taken, and nobody will say more of them: sent again they would come again and again.
            return OtlpAnswer::Taken { rejected: 0, words: words.to_owned(), delayed: Duration::ZERO };
        };
        let began = Instant::now();
        match self.indexed(acknowledgement, &channel, open.numbered(id)).await {
            Ok(()) => OtlpAnswer::Taken { rejected: 0, words: String::new(), delayed: began.elapsed() },
            Err(words) => {
                acknowledgement.channels.replace(&channel);
                OtlpAnswer::lost(words)
            }
        }
    }

    /// Waits until a request that the server has numbered is indexed. An error says why it is not known to be.
    async fn indexed(
        &self,
        settings: &Acknowledgement,
        channel: &Channel,
        numbered: Result<Waiting<'_>, LostChannel>,
    ) -> Result<(), String> {
        let restarted = |_: LostChannel| "the server has restarted before the events were indexed".to_owned();
        let waiting = numbered.map_err(restarted)?;
        let deadline = Instant::now() + settings.timeout;
        loop {
            // Before the state is read: a change behind that is not missed.
            let changed = channel.changed();
            match waiting.state() {
                WaitState::Indexed => return Ok(()),
                WaitState::Lost => return Err(restarted(LostChannel)),
                WaitState::Pending if Instant::now() >= deadline => {
                    return Err(format!("the events were not indexed within {:?}", settings.timeout));
                }
                WaitState::Pending => {}
            }
            tokio::select! {
                biased;
                () = changed => {}
                // One of the requests of a channel asks for all of them.
                _turn = channel.turn() => {
                    tokio::time::sleep(settings.interval).await;
                    self.ask(settings, channel).await;
                }
            }
        }
    }

    /// Asks which requests of a channel are indexed.
    async fn ask(&self, settings: &Acknowledgement, channel: &Channel) {
        let ids = channel.pending();
        let list: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let body = Bytes::from(format!("{{\"acks\":[{}]}}", list.join(",")));
        let head = || {
            let mut head = HttpRequest::new(Full::new(body.clone()));
            *head.method_mut() = Method::POST;
            head.uri_mut().clone_from(&settings.uri);
            head.headers_mut().clone_from(&self.headers);
            head.headers_mut().insert(CHANNEL, channel.name().clone());
            head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Some(head)
        };
        match self.post(head).await {
            Ok(response) if response.status.is_success() => channel.acknowledge(&response.acknowledged(&ids)),
            Ok(response) if response.is_bad_channel() => channel.lose(),
            // A proxy, or a server that is busy: asked again.
            Ok(_) => {}
            // The server is gone, and with it what it knew of its channels.
            Err(_) => channel.lose(),
        }
    }

    /// Sends a request, and reads the answer.
    async fn post(&self, head: impl Fn() -> Option<HttpRequest<Full<Bytes>>>) -> Result<HecResponse, String> {
        let first = head().ok_or_else(|| "the request has no path".to_owned())?;
        let exchange = self.client.exchange(|connections| async move {
            match connections.request_following(first, head).await {
                Ok(response) => HecResponse::read(response).await,
                Err(error) => Err(chain(&error)),
            }
        });
        exchange.await.map_err(|late| late.to_string())?
    }
}
