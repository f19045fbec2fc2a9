//! The pages for browsers: the files of `pages/dist`, compressed when the program was built.

use tidegate_http1::{Content, Head, Reply};

/// A file of the pages.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Where it is served.
    path: &'static str,
    content_type: &'static str,
    /// Its `ETag`: it changes with the content.
    tag: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    headers: &'static [(&'static str, &'static str)],
    gzip_headers: &'static [(&'static str, &'static str)],
}

/// Nothing from elsewhere, no markup that runs, in no frame.
macro_rules! policy {
    () => {
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    };
}

macro_rules! asset {
    ($path:literal, $content_type:literal, $tag:literal, $plain:expr, $gzip:expr) => {
        Asset {
            path: $path,
            content_type: $content_type,
            tag: $tag,
            plain: $plain,
            gzip: $gzip,
            headers: &[
                ("Cache-Control", "no-cache"),
                ("ETag", $tag),
                ("Vary", "Accept-Encoding"),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "same-origin"),
                ("Content-Security-Policy", policy!()),
            ],
            gzip_headers: &[
                ("Content-Encoding", "gzip"),
                ("Cache-Control", "no-cache"),
                ("ETag", $tag),
                ("Vary", "Accept-Encoding"),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "same-origin"),
                ("Content-Security-Policy", policy!()),
            ],
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A file in the form that a request asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AssetRequest {
    asset: &'static Asset,
    form: AssetForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AssetForm {
    Plain,
    Gzip,
    /// The client has it.
    Unchanged,
}

impl AssetRequest {
    /// The file at the path of `head`, if there is one.
    pub(crate) fn of(head: &Head<'_>) -> Option<AssetRequest> {
        let asset = ASSETS.iter().find(|asset| asset.path == head.path())?;
        let form = if head.values("if-none-match").any(|tags| has_tag(tags, asset.tag)) {
            AssetForm::Unchanged
        } else if head.values("accept-encoding").any(accepts_gzip) {
            AssetForm::Gzip
        } else {
            AssetForm::Plain
        };
        Some(AssetRequest { asset, form })
    }

    pub(crate) fn answer(self) -> Reply {
        let AssetRequest { asset, form } = self;
        match form {
            AssetForm::Plain => reply(200, asset.headers, asset).content(Content::Fixed(asset.plain)),
            AssetForm::Gzip => reply(200, asset.gzip_headers, asset).content(Content::Fixed(asset.gzip)),
            AssetForm::Unchanged => reply(304, asset.headers, asset),
        }
    }
}

fn reply(status: u16, headers: &'static [(&'static str, &'static str)], asset: &Asset) -> Reply {
    Reply::new(status).content_type(asset.content_type).headers(headers)
}

/// Whether an `If-None-Match` names `tag` (RFC 9110, section 13.1.2).
fn has_tag(tags: &[u8], tag: &str) -> bool {
    let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_owned();
    tags.split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .any(|known| known == b"*" || opaque(known) == opaque(tag.as_bytes()))
}

/// Whether an `Accept-Encoding` takes gzip (RFC 9110, section 12.5.3).
fn accepts_gzip(codings: &[u8]) -> bool {
    codings.split(|byte| *byte == b',').any(|coding| {
        let mut parts = coding.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"gzip"));
        let is_refused = parts.any(|weight| {
            let value = weight.strip_prefix(b"q=").or_else(|| weight.strip_prefix(b"Q="));
            value.is_some_and(|value| value.iter().all(|digit| matches!(digit, b'0' | b'.')))
        });
        is_gzip && !is_refused
    })
}

#[cfg(test)]
mod tests;
