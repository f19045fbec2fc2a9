//! Which request comes next: the LIST, its pages, the WATCH from there, and the way back from failures.
//!
//! Pure: the requests and the waits are made by [`Watcher`](crate::Watcher). The rules are those of client-go's
//! `Reflector`: the first list may come from the API server's cache; a version that is too old means a new list, of the
//! latest state; a watch that ends goes on from its last version.

use crate::backoff::Backoff;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Write as _;
use std::time::Duration;

/// The pods in one page of a list.
const PAGE: u32 = 250;
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The state between two requests.
#[derive(Debug)]
pub(crate) struct Synchronisation {
    next: Next,
    backoff: Backoff,
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// A list, from its first page on or from where this token says.
    List { is_latest: bool, page: Option<String> },
    /// A watch from this version on.
    Watch { version: String },
}

/// How a request has ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// A page of the list came: the last one where there is no token.
    Page { version: String, next: Option<String> },
    /// The watch has come to its end, at this version, having told something or not.
    Watch { version: String, was_useful: bool },
    /// The version, or the token, is too old: 410.
    Expired,
    /// It failed; a watch had come to this version.
    Failed { version: String, retry_after: Option<Duration> },
}

impl Default for Synchronisation {
    fn default() -> Synchronisation {
        Synchronisation { next: Next::List { is_latest: false, page: None }, backoff: Backoff::default() }
    }
}

impl Synchronisation {
    /// Whether the next request is a watch.
    pub(crate) fn is_watch(&self) -> bool {
        matches!(self.next, Next::Watch { .. })
    }

    /// Whether the next request is the first page of a list.
    pub(crate) fn is_first_page(&self) -> bool {
        matches!(self.next, Next::List { page: None, .. })
    }

    /// The path and query of the next request.
    pub(crate) fn target(&self, node: &str, watch_timeout: Duration) -> String {
        let node = utf8_percent_encode(node, QUERY);
        let mut target = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}");
        // Writing to a string cannot fail.
        let _ = match &self.next {
            Next::List { page: Some(page), .. } => {
                let page = utf8_percent_encode(page, QUERY);
                write!(target, "&limit={PAGE}&continue={page}")
            }
            Next::List { is_latest: true, .. } => write!(target, "&limit={PAGE}"),
            Next::List { .. } => write!(target, "&limit={PAGE}&resourceVersion=0"),
            Next::Watch { version } => {
                let (version, seconds) = (utf8_percent_encode(version, QUERY), watch_timeout.as_secs());
                write!(
                    target,
                    "&watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={version}"
                )
            }
        };
        target
    }

    /// Takes the end of the request, and returns how long to wait before the next.
    pub(crate) fn ended(&mut self, ended: Ended) -> Duration {
        match ended {
            Ended::Page { version, next } => {
                let is_latest = matches!(self.next, Next::List { is_latest: true, .. });
                self.next = match next {
                    Some(page) => Next::List { is_latest, page: Some(page) },
                    None => Next::Watch { version },
                };
                Duration::ZERO
            }
            Ended::Watch { version, was_useful } => {
                self.go_on_from(version);
                if was_useful {
                    self.backoff.reset();
                    return Duration::ZERO;
                }
                // A server or proxy that ends each watch at once must not be asked in a loop.
                self.backoff.wait(None)
            }
            Ended::Expired => {
                self.next = Next::List { is_latest: true, page: None };
                self.backoff.wait(None)
            }
            Ended::Failed { version, retry_after } => {
                self.go_on_from(version);
                self.backoff.wait(retry_after)
            }
        }
    }

    /// A watch goes on from where it was; a list begins again, since its pages are of one moment.
    fn go_on_from(&mut self, reached: String) {
        match &mut self.next {
            Next::Watch { version } if !reached.is_empty() => *version = reached,
            Next::Watch { .. } => {}
            Next::List { page, .. } => *page = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const POD: &str = "/api/v1/pods?fieldSelector=spec.nodeName%3D";

    fn page(version: &str, next: Option<&str>) -> Ended {
        Ended::Page { version: version.to_owned(), next: next.map(ToOwned::to_owned) }
    }

    #[test]
    fn lists_by_pages_and_then_watches() {
        let mut state = Synchronisation::default();
        let target = |state: &Synchronisation| state.target("node/1", MINUTE);
        assert!(state.is_first_page());
        assert_eq!(target(&state), format!("{POD}node%2F1&limit=250&resourceVersion=0"));
        assert_eq!(state.ended(page("7", Some("a=b"))), Duration::ZERO);
        assert!(!state.is_first_page());
        assert_eq!(target(&state), format!("{POD}node%2F1&limit=250&continue=a%3Db"));
        assert_eq!(state.ended(page("7", None)), Duration::ZERO);
        let watch = "&watch=true&allowWatchBookmarks=true&timeoutSeconds=60&resourceVersion=";
        assert_eq!(target(&state), format!("{POD}node%2F1{watch}7"));
        let ended = Ended::Watch { version: "9".into(), was_useful: true };
        assert_eq!(state.ended(ended), Duration::ZERO);
        assert_eq!(target(&state), format!("{POD}node%2F1{watch}9"));
        let failed = Ended::Failed { version: String::new(), retry_after: None };
        assert!(state.ended(failed) > Duration::ZERO);
        assert_eq!(target(&state), format!("{POD}node%2F1{watch}9"));
    }

    #[test]
    fn lists_the_latest_state_when_the_version_has_expired() {
        let mut state = Synchronisation::default();
        state.ended(page("7", None));
        assert!(state.ended(Ended::Expired) > Duration::ZERO);
        assert_eq!(state.target("n", MINUTE), format!("{POD}n&limit=250"));
        assert!(state.is_first_page());
    }

    #[test]
    fn begins_a_list_again_when_a_page_fails() {
        let mut state = Synchronisation::default();
        state.ended(page("7", Some("more")));
        let wait = Duration::from_secs(9);
        let failed = Ended::Failed { version: String::new(), retry_after: Some(wait) };
        assert_eq!(state.ended(failed), wait);
        assert!(state.is_first_page());
    }

    #[test]
    fn waits_longer_and_longer_for_watches_that_end_at_once() {
        let mut state = Synchronisation::default();
        state.ended(page("7", None));
        let waits = (0..10).map(|_| state.ended(Ended::Watch { version: String::new(), was_useful: false }));
        assert!(waits.last().unwrap() >= Duration::from_secs(15));
    }
}
