//! The meaning of a receiver's answer.
//!
//! Source: <https://prometheus.io/docs/specs/prw/remote_write_spec/>: 5xx are retried, 4xx must not be, but for 429, which
//! may. Credentials that are wrong are retried all the same: nothing is known of the data then.

use crate::http_peer::{HttpAnswer, NoAnswer};
use crate::prometheus_remote_write::responses::NO_HISTOGRAMS;
use hyper::StatusCode;
use std::time::Duration;
use tidegate_journal::Tenant;

/// The meaning of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    Accepted,
    /// The receiver never takes this request, but may take parts of it.
    Divisible(String),
    /// It never takes anything like it.
    Rejected(String),
    /// Not now.
    Later(String, Option<Duration>),
}

impl Meaning {
    /// The meaning of the answer to a request of a tenant, or of none.
    pub(super) fn of(answer: Result<HttpAnswer, NoAnswer>, tenant: &Tenant) -> Meaning {
        let HttpAnswer { status, retry_after, excerpt, .. } = match answer {
            Ok(answer) => answer,
            Err(error) => return Meaning::Later(error.to_string(), None),
        };
        let words = format!("{status}: {excerpt}");
        match status {
            _ if status.is_success() => Meaning::Accepted,
            StatusCode::BAD_REQUEST
            | StatusCode::CONFLICT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => Meaning::Divisible(words),
            // Not a failure that time mends, though its status says so.
            StatusCode::INTERNAL_SERVER_ERROR if excerpt.contains(NO_HISTOGRAMS) => Meaning::Divisible(words),
            // It knows nothing of the data. What was acknowledged waits until somebody mends the credentials. One tenant's may not hold up the
            // others.
            StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED
                if *tenant == Tenant::NONE =>
            {
                Meaning::Later(words, retry_after)
            }
            _ if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                Meaning::Rejected(words)
            }
            _ => Meaning::Later(words, retry_after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderMap;

    fn of(status: u16, text: &str) -> Meaning {
        let status = StatusCode::from_u16(status).unwrap();
        let retry_after = Some(Duration::from_secs(7));
        let answer = HttpAnswer { status, retry_after, headers: HeaderMap::new(), excerpt: text.to_owned() };
        Meaning::of(Ok(answer), &Tenant::NONE)
    }

    #[test]
    fn answers_mean_what_the_protocol_says() {
        for status in [200, 202, 204] {
            assert_eq!(of(status, ""), Meaning::Accepted);
        }
        for status in [400, 409, 413, 422] {
            assert!(
                matches!(of(status, "no"), Meaning::Divisible(words) if words.ends_with("no")),
                "{status}"
            );
        }
        assert!(matches!(of(500, "native histograms are disabled"), Meaning::Divisible(_)));
        for status in [403, 404, 405, 415] {
            assert!(matches!(of(status, ""), Meaning::Rejected(_)), "{status}");
        }
        for status in [301, 401, 407, 429, 500, 502, 503, 504] {
            assert!(
                matches!(of(status, ""), Meaning::Later(_, Some(after)) if after.as_secs() == 7),
                "{status}"
            );
        }
        let lost = Meaning::of(Err(NoAnswer::Connection("reset".to_owned())), &Tenant::NONE);
        assert_eq!(lost, Meaning::Later("reset".to_owned(), None));
    }
    #[test]
    fn a_tenant_that_is_refused_holds_up_nobody() {
        let answer = |status| {
            let (headers, excerpt) = (HeaderMap::new(), String::new());
            Ok(HttpAnswer { status, retry_after: None, headers, excerpt })
        };
        let tenant = Tenant::new("team").unwrap();
        assert!(matches!(Meaning::of(answer(StatusCode::UNAUTHORIZED), &tenant), Meaning::Rejected(_)));
    }
}
