//! The answers to agents, and the shape of what is refused.

use crate::control::{AckItem, Enrolled, Enrollment};
use crate::time;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tidegate_arena::Window;
use tidegate_http1::{ErrorFormat, Refusal, Reply};

const JSON: &str = "application/json; charset=utf-8";
const HEADERS: &[(&str, &str)] =
    &[("Elastic-Api-Version", "2023-06-01"), ("X-Content-Type-Options", "nosniff")];
/// Of files: clients may ask for a part, and what is in one is nothing to show in a page.
pub(super) const DOWNLOAD_HEADERS: &[(&str, &str)] = &[
    ("Accept-Ranges", "bytes"),
    ("Elastic-Api-Version", "2023-06-01"),
    ("X-Content-Type-Options", "nosniff"),
];
const COMPRESSED: &[(&str, &str)] = &[
    ("Content-Encoding", "gzip"),
    ("Elastic-Api-Version", "2023-06-01"),
    ("X-Content-Type-Options", "nosniff"),
];

/// A refusal: `{"statusCode":…,"error":…,"message":…}`.
#[derive(Debug, Clone)]
pub(super) struct ApiError {
    status: u16,
    error: &'static str,
    message: Cow<'static, str>,
    retry_after: Option<u32>,
}

impl ApiError {
    pub(super) const UNAUTHORIZED: ApiError =
        ApiError::new(401, "Unauthorized", "the API key is missing, unknown or revoked");
    pub(super) const BUSY: ApiError = ApiError {
        status: 503,
        error: "ServiceUnavailable",
        message: Cow::Borrowed("the memory for requests of agents is in use; try again"),
        retry_after: Some(5),
    };

    pub(super) const fn new(status: u16, error: &'static str, message: &'static str) -> ApiError {
        ApiError { status, error, message: Cow::Borrowed(message), retry_after: None }
    }

    pub(super) fn owned(status: u16, error: &'static str, message: String) -> ApiError {
        ApiError { message: Cow::Owned(message), ..ApiError::new(status, error, "") }
    }

    pub(super) fn retry_after(self, seconds: u32) -> ApiError {
        ApiError { retry_after: Some(seconds), ..self }
    }

    /// The same for the routes where agents try again on 429 alone.
    pub(super) fn into_429(self) -> ApiError {
        match self.status {
            503 => ApiError { status: 429, error: "TooManyRequests", ..self },
            _ => self,
        }
    }

    pub(super) fn reply(&self) -> Reply {
        let ApiError { status, error, message, retry_after } = self;
        let body = json!({"statusCode": status, "error": error, "message": message});
        let reply = json_reply(*status, body.to_string());
        match retry_after {
            Some(seconds) => reply.retry_after(*seconds),
            None => reply,
        }
    }
}

/// An answer with this JSON.
pub(super) fn json_reply(status: u16, body: String) -> Reply {
    Reply::new(status).content_type(JSON).headers(HEADERS).content(body)
}

/// An answer with the JSON in a window, compressed or not.
pub(super) fn json_window(status: u16, window: Window, is_compressed: bool) -> Reply {
    let headers = if is_compressed { COMPRESSED } else { HEADERS };
    Reply::new(status).content_type(JSON).headers(headers).content(window)
}

/// The answer to a chunk.
pub(super) fn chunk_received() -> Reply {
    Reply::new(200).headers(HEADERS)
}

/// The answer to a probe. Only those with credentials are told the version.
pub(super) fn status(is_known: bool) -> Reply {
    let body = match is_known {
        true => {
            let version = json!({"number": env!("CARGO_PKG_VERSION")});
            json!({"name": "tidegate", "status": "HEALTHY", "version": version})
        }
        false => json!({"name": "tidegate", "status": "HEALTHY"}),
    };
    json_reply(200, body.to_string())
}

/// The answer to a check-in for which nothing has come.
pub(super) fn nothing_to_do(ack_token: u64) -> Reply {
    json_reply(200, format!("{{\"action\":\"checkin\",\"ack_token\":\"{ack_token}\",\"actions\":[]}}"))
}

/// How long the answer to an enrolment is at most, in bytes.
pub(super) fn enrolled_len(request: &Enrollment<'_>) -> usize {
    let json = [request.local_metadata, request.user_provided_metadata];
    let json: usize = json.iter().flatten().map(|json| json.get().len()).sum();
    // A character of a tag takes six bytes at most, and the rest are ids, a time and a key.
    let tags: usize = request.tags.iter().map(|tag| 6 * tag.len() + 3).sum();
    json + tags + (1 << 10)
}

/// The answer to an enrolment.
pub(super) fn enrolled(request: &Enrollment<'_>, agent: &Enrolled) -> String {
    let empty = || RawValue::from_string("{}".to_owned()).unwrap_or_default();
    let metadata = |json: Option<&RawValue>| json.map_or_else(empty, ToOwned::to_owned);
    let body = EnrollResponse {
        action: "created",
        item: EnrolledItem {
            id: agent.id.to_string(),
            active: true,
            policy_id: &agent.policy_id,
            kind: "PERMANENT",
            enrolled_at: time::text(agent.enrolled_ms),
            access_api_key_id: agent.id.to_string(),
            access_api_key: &agent.access_api_key,
            local_metadata: metadata(request.local_metadata),
            user_provided_metadata: metadata(request.user_provided_metadata),
            actions: [],
            status: "online",
            tags: &request.tags,
        },
    };
    serde_json::to_string(&body).unwrap_or_default()
}

#[derive(serde::Serialize)]
struct EnrollResponse<'a> {
    action: &'static str,
    item: EnrolledItem<'a>,
}

#[derive(serde::Serialize)]
struct EnrolledItem<'a> {
    id: String,
    active: bool,
    policy_id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    enrolled_at: String,
    access_api_key_id: String,
    access_api_key: &'a str,
    local_metadata: Box<RawValue>,
    user_provided_metadata: Box<RawValue>,
    actions: [(); 0],
    status: &'static str,
    tags: &'a [String],
}

/// The answer to an acknowledgement: its status, which is the worst of its items, and its JSON.
pub(super) fn acknowledged(items: &[AckItem]) -> (u16, String) {
    let status = items.iter().map(|item| item.status).max().unwrap_or(200);
    let all: Vec<_> =
        items.iter().map(|item| json!({"status": item.status, "message": item.message})).collect();
    let body = json!({"action": "acks", "errors": status >= 400, "items": all});
    (status, body.to_string())
}

/// The answer where the codec refuses.
pub(super) fn refusal_reply(refusal: Refusal) -> Reply {
    let reply = refusal.reply().content_type(JSON).headers(HEADERS).formatted(shape(refusal.status()));
    match refusal {
        Refusal::Memory => reply.retry_after(5),
        _ => reply,
    }
}

/// Formats the words of a refusal with this status.
fn shape(status: u16) -> ErrorFormat {
    /// The shape of one status: it is in the function, since a reply has room for no more than that.
    macro_rules! of {
        ($status:literal, $error:literal) => {
            |out, text| {
                let text: Vec<u8> = text.concat();
                let message = String::from_utf8_lossy(text.trim_ascii());
                let body = json!({"statusCode": $status, "error": $error, "message": message});
                out.extend_from_slice(body.to_string().as_bytes());
            }
        };
    }
    match status {
        408 => of!(408, "RequestTimeout"),
        413 => of!(413, "RequestEntityTooLarge"),
        414 => of!(414, "RequestURITooLong"),
        417 => of!(417, "ExpectationFailed"),
        431 => of!(431, "RequestHeaderFieldsTooLarge"),
        501 => of!(501, "NotImplemented"),
        503 => of!(503, "ServiceUnavailable"),
        505 => of!(505, "HTTPVersionNotSupported"),
        _ => of!(400, "BadRequest"),
    }
}
