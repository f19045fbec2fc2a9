//! Redirections: where a request may be made again, and what to say where it may not.

use hyper::header::{HeaderMap, LOCATION};
use hyper::{StatusCode, Uri};

/// The most bytes of a place that are said.
const MAX_PLACE: usize = 512;

/// Where a request to `here` is made again: at another place on the same host, by a status that keeps the method and the
/// body, as Go's client does. Not on another host: what a header says is a secret between two.
pub(super) fn target(status: StatusCode, headers: &HeaderMap, here: &Uri) -> Option<Uri> {
    if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        return None;
    }
    let place: Uri = headers.get(LOCATION)?.to_str().ok()?.parse().ok()?;
    let is_here = place.scheme_str().is_none_or(|scheme| Some(scheme) == here.scheme_str())
        && place.host().is_none_or(|host| Some(host) == here.host());
    if !is_here || place == *here {
        return None;
    }
    let (mut parts, there) = (here.clone().into_parts(), place.into_parts());
    parts.path_and_query = there.path_and_query;
    parts.authority = there.authority.or(parts.authority);
    Uri::from_parts(parts).ok()
}

/// The message for a redirect that is not followed; `None` if the response is not a redirect.
pub(crate) fn words(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    let place = headers.get(LOCATION).filter(|_| status.is_redirection())?.as_bytes();
    let place = String::from_utf8_lossy(place.get(..MAX_PLACE).unwrap_or(place));
    Some(format!("it is at {place}, where this does not follow: change `endpoints` to that"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target_of(status: u16, place: &str) -> Option<String> {
        let headers = HeaderMap::from_iter([(LOCATION, place.parse().unwrap())]);
        let here = "http://a:1/es/_bulk?x=1".parse().unwrap();
        target(StatusCode::from_u16(status).unwrap(), &headers, &here).map(|place| place.to_string())
    }

    #[test]
    fn only_the_same_host_and_scheme_are_followed() {
        assert_eq!(target_of(307, "/b?y=2").as_deref(), Some("http://a:1/b?y=2"));
        assert_eq!(target_of(308, "http://a:2/b").as_deref(), Some("http://a:2/b"));
        let refused = [
            (302, "/b"),
            (307, "http://b:1/b"),
            (307, "https://a:1/b"),
            (307, "http://a:1/es/_bulk?x=1"),
            (307, ""),
        ];
        assert!(refused.into_iter().all(|(status, place)| target_of(status, place).is_none()));
    }
}
