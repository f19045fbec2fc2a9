//! Refuses requests that a page of another site has a browser send.
//!
//! Any page can have a browser post to any address that the browser reaches, loopback with it, as long as the body is
//! marked as one that a form could send (Fetch standard, "CORS-safelisted request-header": three content types, or none).
//! For every other type the browser asks first, and is not allowed here. So a request that a browser sends for a page is
//! taken only with a type that a form cannot send, which is what the protocols have: `application/x-protobuf`,
//! `application/x-ndjson`, `application/json`, `application/grpc`.
//!
//! Whether it is a browser that sends is told by `Sec-Fetch-Site` (to `https` and loopback, all browsers since 2023), and
//! by `Origin`, which is with every `POST`. A page cannot leave them out, and nobody else has a use for them: so senders
//! that name no type, or a wrong one, as curl does by default, are taken as ever.

use crate::caller::Caller;
use crate::rejection::Rejection;
use tidegate_ledger::Refusal;

/// Checks that no page of another site could have sent this request.
///
/// # Errors
/// `unsupported` where a page of another site could have sent it.
#[inline]
pub(crate) fn check(caller: &Caller<'_>) -> Result<(), Rejection> {
    if !caller.guarded {
        return Ok(());
    }
    match caller.headers.sole("content-type") {
        // The common case costs one look.
        Ok(Some(kind)) if !is_of_forms(kind) => Ok(()),
        _ if comes_from_a_page(caller) => Err(Rejection::new(Refusal::Unsupported, FROM_A_PAGE)),
        _ => Ok(()),
    }
}

const FROM_A_PAGE: &str = "this looks like a form submitted by a web page, which any page could send; requests with `Origin` or \
                           `Sec-Fetch-Site` need the protocol's own Content-Type, such as application/x-ndjson\n";

fn comes_from_a_page(caller: &Caller<'_>) -> bool {
    let origin = caller.headers.sole("origin");
    // A request typed by a person comes from no page.
    let site = caller.headers.sole("sec-fetch-site");
    !matches!(origin, Ok(None)) || !matches!(site, Ok(None | Some(b"none")))
}

/// Whether a form could have sent this type: what comes before the parameters counts.
fn is_of_forms(kind: &[u8]) -> bool {
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let of_forms: [&[u8]; 4] =
        [b"", b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data"];
    of_forms.iter().any(|of_forms| essence.eq_ignore_ascii_case(of_forms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Headers;
    use std::net::{IpAddr, Ipv4Addr};
    use tidegate_http1::DuplicateHeader;
    use tidegate_limit::Moment;

    struct HeaderList<'a>(&'a [(&'a str, &'a str)]);

    impl Headers for HeaderList<'_> {
        fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
            let mut found = self.0.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            let first = found.next().map(|(_, value)| value.as_bytes());
            if found.next().is_some() { Err(DuplicateHeader) } else { Ok(first) }
        }
    }

    fn ask(guarded: bool, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let headers = &HeaderList(headers);
        let caller = Caller {
            peer,
            certificate: None,
            headers,
            bytes: None,
            now: Moment::now(),
            guarded,
            journalled: true,
        };
        check(&caller).map_err(|refused| refused.reason)
    }

    #[test]
    fn pages_of_other_sites_cannot_send_what_forms_can() {
        let kinds = [
            &[][..],
            &[("Content-Type", "")],
            &[("Content-Type", "text/plain")],
            &[("Content-Type", "Text/Plain;charset=UTF-8")],
            &[("Content-Type", "text/plain ; application/x-ndjson")],
            &[("Content-Type", "application/x-www-form-urlencoded")],
            &[("Content-Type", "multipart/form-data; boundary=x")],
            &[("Content-Type", "application/json"), ("Content-Type", "text/plain")],
        ];
        let pages = [
            &[("Origin", "https://evil.example")][..],
            &[("Origin", "null")],
            &[("Sec-Fetch-Site", "cross-site")],
            &[("Sec-Fetch-Site", "same-site"), ("Origin", "http://localhost:3000")],
            // A name that was made to lead here.
            &[("Sec-Fetch-Site", "same-origin"), ("Origin", "http://rebound.example:4318")],
            &[("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")],
        ];
        for (kind, page) in kinds.iter().flat_map(|kind| pages.iter().map(move |page| (kind, page))) {
            let headers = [*kind, *page].concat();
            assert_eq!(ask(true, &headers), Err(Refusal::Unsupported), "{headers:?}");
            assert_eq!(ask(false, &headers), Ok(()), "{headers:?}");
            assert_eq!(ask(true, kind), Ok(()), "senders may name any type, or none: {kind:?}");
        }
    }

    #[test]
    fn the_types_of_the_protocols_are_taken_from_everywhere() {
        let kinds = [
            "application/x-protobuf",
            "application/x-protobuf;proto=io.prometheus.write.v2.Request",
            "application/x-ndjson",
            "application/json",
            "application/vnd.elasticsearch+x-ndjson;compatible-with=8",
            "application/grpc+proto",
        ];
        for kind in kinds {
            let headers = [("Content-Type", kind), ("Origin", "https://a.example")];
            assert_eq!(ask(true, &headers), Ok(()), "{kind}: browsers ask first, and are told no");
        }
    }
}
