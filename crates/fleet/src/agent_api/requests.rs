//! The JSON of agents. Fields that are not known are skipped: later versions add some.

use super::answers::ApiError;
use super::limited::{Limited, ShortText};
use crate::agent_id::AgentId;
use crate::control::{AckEvent, CheckIn, Enrollment};
use crate::registry::{AgentStatus, AgentVersion};
use crate::time;
use serde::Deserialize;
use serde_json::value::RawValue;

const LONGEST_ENROLLMENT_ID: usize = 256;
const MOST_TAGS: usize = 100;
const LONGEST_TAG: usize = 256;
/// Events of an acknowledgement: agents send as many as they got actions.
const MOST_EVENTS: usize = 1000;
const REASONS: [&str; 4] = ["uninstall", "orphaned", "key_revoked", "migrated"];

#[derive(Debug, Deserialize)]
pub(super) struct EnrollRequest<'a> {
    #[serde(rename = "type")]
    kind: ShortText,
    #[serde(default)]
    id: Option<ShortText>,
    #[serde(default)]
    enrollment_id: Option<ShortText>,
    #[serde(default)]
    replace_token: Option<ShortText>,
    #[serde(borrow, default)]
    metadata: Option<EnrollMetadata<'a>>,
}

#[derive(Debug, Deserialize, Default)]
struct EnrollMetadata<'a> {
    #[serde(borrow, default)]
    local: Option<&'a RawValue>,
    #[serde(borrow, default)]
    user_provided: Option<&'a RawValue>,
    #[serde(default)]
    tags: Option<Limited<String, MOST_TAGS>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CheckInRequest<'a> {
    #[serde(default)]
    status: Option<ShortText>,
    #[serde(default)]
    ack_token: Option<ShortText>,
    #[serde(borrow, default)]
    local_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    components: Option<&'a RawValue>,
    #[serde(borrow, default)]
    upgrade_details: Option<&'a RawValue>,
    #[serde(default)]
    poll_timeout: Option<ShortText>,
    #[serde(default)]
    agent_policy_id: Option<ShortText>,
    #[serde(default)]
    policy_revision_idx: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AckRequest<'a> {
    #[serde(borrow)]
    events: Limited<&'a RawValue, MOST_EVENTS>,
}

#[derive(Debug, Deserialize)]
struct AckedEvent<'a> {
    #[serde(borrow)]
    action_id: &'a str,
    #[serde(borrow, default)]
    agent_id: Option<&'a str>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

/// The part of an event's payload that is read.
#[derive(Debug, Default, Deserialize)]
struct AckedPayload {
    #[serde(default)]
    retry: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct AuditRequest {
    reason: ShortText,
}

impl EnrollRequest<'_> {
    pub(super) fn enrollment<'b>(
        &'b self,
        token: &'b str,
        version: AgentVersion,
    ) -> Result<Enrollment<'b>, ApiError> {
        if self.kind.0 != "PERMANENT" {
            return Err(ApiError::new(400, "BadRequest", "the `type` of an enrolment is PERMANENT"));
        }
        let id = given(&self.id).map(str::parse::<AgentId>).transpose();
        let id = id.map_err(|error| ApiError::owned(400, "BadRequest", error.to_string()))?;
        let enrollment_id = given(&self.enrollment_id);
        if enrollment_id.is_some_and(|id| id.len() > LONGEST_ENROLLMENT_ID) {
            return Err(ApiError::new(400, "BadRequest", "an `enrollment_id` has at most 256 bytes"));
        }
        let metadata = self.metadata.as_ref();
        let tags = metadata.and_then(|metadata| metadata.tags.as_ref()).map_or(&[][..], |tags| &tags.0);
        if tags.iter().any(|tag| tag.len() > LONGEST_TAG) {
            return Err(ApiError::new(400, "BadRequest", "a tag has at most 256 bytes"));
        }
        Ok(Enrollment {
            token,
            version,
            id,
            enrollment_id,
            replace_token: given(&self.replace_token),
            local_metadata: metadata.and_then(|metadata| metadata.local),
            user_provided_metadata: metadata.and_then(|metadata| metadata.user_provided),
            tags: tags.to_vec(),
        })
    }
}

impl CheckInRequest<'_> {
    pub(super) fn check_in(&self, version: AgentVersion) -> Result<CheckIn<'_>, ApiError> {
        let poll_timeout = given(&self.poll_timeout);
        let poll_timeout = poll_timeout.map(|text| {
            time::parse_go_duration(text).ok_or(ApiError::new(
                400,
                "BadRequest",
                "`poll_timeout` is a duration such as 5m30s",
            ))
        });
        Ok(CheckIn {
            key: None,
            version,
            status: given(&self.status)
                .map(|status| AgentStatus::named(status).unwrap_or(AgentStatus::Unknown)),
            // A token of another server says nothing here.
            received: given(&self.ack_token).and_then(|token| token.parse().ok()),
            local_metadata: self.local_metadata,
            components: self.components,
            upgrade_details: self.upgrade_details,
            poll_timeout: poll_timeout.transpose()?,
            policy: given(&self.agent_policy_id).zip(self.policy_revision_idx),
        })
    }
}

impl<'a> AckRequest<'a> {
    pub(super) fn events(&self) -> Result<Vec<AckEvent<'a>>, ApiError> {
        let event = |whole: &&'a RawValue| {
            let event: AckedEvent<'a> = serde_json::from_str(whole.get()).map_err(|error| {
                ApiError::owned(400, "BadRequest", format!("an event is not valid: {error}"))
            })?;
            Ok(AckEvent {
                action_id: event.action_id,
                agent_id: event.agent_id.unwrap_or_default(),
                whole,
                will_retry: event
                    .payload
                    .and_then(|payload| serde_json::from_str::<AckedPayload>(payload.get()).ok())
                    .is_some_and(|payload| payload.retry),
                has_failed: event.error.is_some_and(|error| error.get() != "\"\""),
            })
        };
        self.events.0.iter().map(event).collect()
    }
}

impl AuditRequest {
    pub(super) fn reason(&self) -> Result<&str, ApiError> {
        match REASONS.contains(&self.reason.0.as_str()) {
            true => Ok(&self.reason.0),
            false => Err(ApiError::owned(
                400,
                "BadRequest",
                format!("the `reason` is one of {}", REASONS.join(", ")),
            )),
        }
    }
}

/// A text, where there is one that is not empty.
fn given(text: &Option<ShortText>) -> Option<&str> {
    text.as_ref().map(|text| text.0.as_str()).filter(|text| !text.is_empty())
}
