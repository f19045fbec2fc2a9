//! A policy in memory, ready to be sent to any number of agents.

pub(crate) mod json;
mod outputs;

pub use outputs::OutputSettings;

use crate::agent_id::AgentId;
use crate::output_keys;
use crate::record::PolicyRecord;
use crate::rollout_progress::RolloutProgress;
use crate::time;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_admission::access::{Identity, TenantRule};
use tidegate_arena::{Charge, ChargeError, Window};
use tidegate_wire::gzip::{Piece, Section, splice, spliced_len};

/// The compression of policies: done once for all agents.
const LEVEL: i32 = 6;
/// The longest policy, in bytes.
pub const LONGEST_POLICY: usize = 512 << 10;
/// The heap of a policy that is put: as it was and is, as text and line by line, and as it goes to the state.
pub const CHANGE_BYTES: usize = 12 * LONGEST_POLICY;
/// The longest id of a policy, in bytes.
const LONGEST_ID: usize = 128;

/// The newest revision of a policy.
pub(crate) struct Policy {
    pub(crate) id: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) changed_ms: u64,
    /// The version of its record in the state; 0 before it is there.
    pub(crate) version: u64,
    /// A JSON object, with `id` and `revision`, cut where the output key of an agent belongs.
    parts: Box<[Part]>,
    /// The sender of what agents send to this gateway; `None` where the policy has no such output.
    pub(crate) sender: Option<Identity>,
    /// How far this revision has come; that of one that was put before the start is not known.
    pub(crate) progress: Arc<RolloutProgress>,
    /// For the parts.
    _memory: Charge,
}

/// A part of a policy that is the same for all agents.
struct Part {
    text: Box<str>,
    compressed: Section,
}

/// The parts of an answer around a policy.
pub(crate) struct Envelope {
    before: String,
    behind: String,
    /// The agent's, for the outputs to this gateway.
    output_key: String,
}

/// Why a text cannot be a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidPolicy {
    /// It is no JSON.
    #[error("the policy is not valid JSON: {0}")]
    Json(String),
    /// It is not as policies are.
    #[error("the policy {0}")]
    Shape(String),
    /// Its id cannot be one.
    #[error(
        "an id of a policy has 1 to 128 letters, digits, hyphens, underscores and dots, and this is none: `{0}`"
    )]
    Id(String),
}

impl Policy {
    /// A policy as the state has it; `charge` pays for so many bytes.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn new(
        id: &str,
        record: &PolicyRecord,
        charge: impl FnOnce(u64) -> Result<Charge, ChargeError>,
    ) -> Result<Policy, ChargeError> {
        let (texts, tenant) = parts_of(id, record);
        let of = |text: String| {
            let compressed = Section::new(text.as_bytes(), LEVEL).unwrap_or_else(|_| unreachable!("a level"));
            Part { text: text.into_boxed_str(), compressed }
        };
        let parts: Box<[Part]> = texts.into_iter().map(of).collect();
        let bytes: usize = parts.iter().map(|part| part.text.len() + part.compressed.compressed_len()).sum();
        let name = format!("an agent with the policy {id}");
        Ok(Policy {
            id: id.into(),
            revision: record.revision,
            changed_ms: record.changed_ms,
            version: 0,
            parts,
            sender: tenant.map(|tenant| Identity::of_issued_key(&name, tenant)),
            progress: RolloutProgress::new(),
            _memory: charge(bytes as u64)?,
        })
    }

    /// Whether this text is in its JSON, in what is the same for all agents.
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.parts.iter().any(|part| part.text.contains(text))
    }

    /// How long its JSON is, in bytes.
    pub(crate) fn len(&self) -> usize {
        let texts: usize = self.parts.iter().map(|part| part.text.len()).sum();
        texts + self.keys() * output_keys::TEXT_LEN
    }

    /// How often the output key of an agent is in it.
    fn keys(&self) -> usize {
        self.parts.len().saturating_sub(1)
    }

    /// The id of the action that brings it.
    pub(crate) fn action_id(&self) -> String {
        format!("policy:{}:{}", self.id, self.revision)
    }

    /// The parts of an answer to a check-in that are the agent's own.
    pub(crate) fn envelope(&self, agent: AgentId, ack_token: u64, output_key: String) -> Envelope {
        let action = self.action_id();
        let at = time::text(self.changed_ms);
        let before = format!(
            "{{\"action\":\"checkin\",\"ack_token\":\"{ack_token}\",\"actions\":[{{\"agent_id\":\"{agent}\",\"created_at\":\"{at}\",\
             \"id\":\"{action}\",\"input_type\":\"\",\"type\":\"POLICY_CHANGE\",\"data\":{{\"policy\":"
        );
        Envelope { before, behind: "}}]}".to_owned(), output_key }
    }

    /// How long an answer is at most, in bytes, compressed or not.
    pub(crate) fn answer_len(&self, is_compressed: bool) -> usize {
        // Around it are an id of an agent, two of the policy, a time and two numbers.
        let around = 2 * LONGEST_ID + 512;
        match is_compressed {
            true => spliced_len(&self.pieces(&[0; output_keys::TEXT_LEN])) + around,
            false => self.len() + around,
        }
    }

    /// Writes the answer.
    ///
    /// # Errors
    /// When `window` may not grow by as much.
    pub(crate) fn write(
        &self,
        Envelope { before, behind, output_key }: &Envelope,
        is_compressed: bool,
        window: &mut Window,
    ) -> Result<(), ChargeError> {
        if is_compressed {
            let mut pieces = self.pieces(output_key.as_bytes());
            pieces.insert(0, Piece::Stored(before.as_bytes()));
            pieces.push(Piece::Stored(behind.as_bytes()));
            return splice(&pieces, |bytes| window.append(bytes));
        }
        window.append(before.as_bytes())?;
        for (at, part) in self.parts.iter().enumerate() {
            let key = if at > 0 { output_key.as_str() } else { "" };
            window.append(key.as_bytes())?;
            window.append(part.text.as_bytes())?;
        }
        window.append(behind.as_bytes())
    }

    /// The parts, and this key between them.
    fn pieces<'a>(&'a self, output_key: &'a [u8]) -> Vec<Piece<'a>> {
        let mut pieces = Vec::with_capacity(2 * self.parts.len() + 1);
        for (at, part) in self.parts.iter().enumerate() {
            pieces.extend((at > 0).then_some(Piece::Stored(output_key)));
            pieces.push(Piece::Compressed(&part.compressed));
        }
        pieces
    }
}

/// The JSON of a policy as agents get it, cut where their output key belongs, and the tenant of what they send with it.
fn parts_of(id: &str, record: &PolicyRecord) -> (Vec<String>, Option<TenantRule>) {
    let (mut parts, mut tenant) = (Vec::new(), None);
    // An id has no characters that JSON escapes.
    let mut last = format!("{{\"id\":\"{id}\",\"revision\":{}", record.revision);
    // It was read when it was put.
    let members: BTreeMap<&str, &RawValue> = serde_json::from_str(record.body.get()).unwrap_or_default();
    for (name, value) in members {
        last.push_str(&format!(",\"{name}\":"));
        if name != "outputs" {
            last.push_str(value.get());
            continue;
        }
        let outputs = outputs::for_agents(value);
        tenant = outputs.tenant;
        for (at, part) in outputs.parts.iter().enumerate() {
            if at > 0 {
                parts.push(std::mem::take(&mut last));
            }
            last.push_str(part);
        }
    }
    last.push('}');
    parts.push(last);
    (parts, tenant)
}

/// A policy as it was put, with its id and revision.
pub(crate) fn shown(id: &str, record: &PolicyRecord) -> String {
    let rest = record.body.get().trim_start_matches('{');
    let separator = if rest == "}" { "" } else { "," };
    // An id has no characters that JSON escapes.
    format!("{{\"id\":\"{id}\",\"revision\":{}{separator}{rest}", record.revision)
}

/// The body of a policy from a text that somebody wrote: an object without `id` and `revision`, which are given by where and when
/// it is put. Outputs to this gateway get their hosts from `settings` where they name none.
///
/// # Errors
/// When the text is no policy.
pub(crate) fn body(text: &[u8], settings: &OutputSettings) -> Result<Box<RawValue>, InvalidPolicy> {
    if text.len() > LONGEST_POLICY {
        return Err(InvalidPolicy::Shape(format!(
            "has {} bytes, and {LONGEST_POLICY} are the most",
            text.len()
        )));
    }
    let whole: &RawValue =
        serde_json::from_slice(text).map_err(|error| InvalidPolicy::Json(error.to_string()))?;
    if !whole.get().starts_with('{') {
        return Err(InvalidPolicy::Shape("is not an object".to_owned()));
    }
    let members: BTreeMap<&str, &RawValue> = parsed(whole, "a member of the policy has a name with escapes")?;
    let outputs = match members.get("outputs") {
        Some(outputs) => parsed(outputs, "has `outputs`, which must be an object, by name of the output")?,
        None => BTreeMap::<String, serde::de::IgnoredAny>::new(),
    };
    if let Some(agent) = members.get("agent") {
        parsed::<BTreeMap<String, serde::de::IgnoredAny>>(agent, "has `agent`, which must be an object")?;
    }
    let inputs: Vec<&RawValue> = match members.get("inputs") {
        Some(inputs) => parsed(inputs, "has `inputs`, which must be an array")?,
        None => Vec::new(),
    };
    for (at, input) in inputs.into_iter().enumerate() {
        let input: Input =
            parsed(input, &format!("has `inputs[{at}]`, which must be an object with `type`"))?;
        if let Some(output) = input.use_output
            && !outputs.contains_key(&output)
        {
            return Err(InvalidPolicy::Shape(format!(
                "has `inputs[{at}].use_output: {output}`, and `outputs` has no `{output}`"
            )));
        }
    }
    let resolved = members.get("outputs").map(|outputs| outputs::resolved(outputs, settings)).transpose()?;
    let mut compact = String::with_capacity(text.len());
    for (name, value) in members.iter().filter(|(name, _)| !matches!(**name, "id" | "revision")) {
        compact.push_str(if compact.is_empty() { "{" } else { "," });
        // Without escapes, since it was borrowed.
        compact.push_str(&format!("\"{name}\":"));
        let value = match &resolved {
            Some(Some(outputs)) if *name == "outputs" => outputs,
            _ => value.get(),
        };
        if !json::compact(value, &mut compact) {
            return Err(InvalidPolicy::Shape(format!("is nested too deeply in `{name}`")));
        }
    }
    compact.push_str(if compact.is_empty() { "{}" } else { "}" });
    if compact.len() > LONGEST_POLICY {
        return Err(InvalidPolicy::Shape(format!("is longer than {LONGEST_POLICY} bytes with its hosts")));
    }
    RawValue::from_string(compact).map_err(|error| InvalidPolicy::Json(error.to_string()))
}

/// The checked members of an input.
#[derive(serde::Deserialize)]
struct Input {
    #[serde(rename = "type")]
    _kind: String,
    #[serde(default)]
    use_output: Option<String>,
}

fn parsed<'a, T: serde::Deserialize<'a>>(json: &'a RawValue, otherwise: &str) -> Result<T, InvalidPolicy> {
    serde_json::from_str(json.get()).map_err(|_| InvalidPolicy::Shape(otherwise.to_owned()))
}

/// Whether a text can be the id of a policy.
///
/// # Errors
/// [`InvalidPolicy::Id`].
pub(crate) fn check_id(id: &str) -> Result<(), InvalidPolicy> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(legal) {
        true => Ok(()),
        false => Err(InvalidPolicy::Id(id.chars().take(LONGEST_ID).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_arena::{Arena, Floors, Share};

    /// Output that grows as it must.
    #[derive(Default)]
    struct Unlimited {
        bytes: Vec<u8>,
        len: usize,
    }

    impl tidegate_wire::coding::Grow for Unlimited {
        fn spare(&mut self) -> &mut [u8] {
            &mut self.bytes[self.len..]
        }

        fn advance(&mut self, bytes: usize) {
            self.len += bytes;
        }

        fn grow(&mut self, more: usize) -> bool {
            self.bytes.resize(self.len + more.max(1), 0);
            true
        }
    }

    fn settings() -> OutputSettings {
        OutputSettings { hosts: vec!["http://gw:9200".to_owned()], has_tenants: true }
    }

    fn policy(body_text: &str) -> (Policy, Arena) {
        let arena = Arena::new(4 << 20, Floors::NONE, 1 << 20, 4, 4).unwrap();
        let record = PolicyRecord {
            revision: 3,
            changed_ms: 0,
            body: body(body_text.as_bytes(), &settings()).unwrap(),
        };
        (Policy::new("p", &record, |bytes| arena.try_charge(Share::Ingest, bytes)).unwrap(), arena)
    }

    /// The answer fits in the memory that is asked for, and has the agent, the token and the policy.
    #[test]
    fn an_answer_has_the_policy() {
        let outputs = "{\"outputs\":{\"a\":{\"type\":\"tidegate\"},\"b\":{\"type\":\"tidegate\"}}}";
        for text in ["{}", "{\"id\":\"other\",\"revision\":9,\"inputs\":[{\"type\":\"logfile\"}]}", outputs] {
            let (policy, arena) = policy(text);
            let (agent, key) = (AgentId::random(), "k".repeat(output_keys::TEXT_LEN));
            let mut window = arena.try_window(Share::Egress, policy.answer_len(false)).unwrap();
            policy.write(&policy.envelope(agent, 42, key.clone()), false, &mut window).unwrap();
            assert!(window.len() <= policy.answer_len(false));
            let answer: serde_json::Value = serde_json::from_slice(&window).unwrap();
            assert_eq!(answer["ack_token"], "42");
            let action = &answer["actions"][0];
            assert_eq!(
                (action["id"].as_str(), action["type"].as_str()),
                (Some("policy:p:3"), Some("POLICY_CHANGE"))
            );
            assert_eq!(action["agent_id"], agent.to_string());
            assert_eq!(action["data"]["policy"]["revision"], 3);
            assert_eq!(action["data"]["policy"]["id"], "p");
            for output in action["data"]["policy"]["outputs"].as_object().into_iter().flatten() {
                assert_eq!(
                    (&output.1["type"], &output.1["api_key"]),
                    (&"elasticsearch".into(), &(*key).into())
                );
            }

            let mut compressed = arena.try_window(Share::Egress, policy.answer_len(true)).unwrap();
            policy.write(&policy.envelope(agent, 42, key.clone()), true, &mut compressed).unwrap();
            assert!(compressed.len() <= policy.answer_len(true));
            let mut decoder = tidegate_wire::gzip::Decoder::new();
            let mut decompressed = Unlimited::default();
            tidegate_wire::coding::decode(&mut decoder, &compressed, &mut decompressed).unwrap();
            assert_eq!(decompressed.bytes[..decompressed.len], window[..]);
        }
    }

    /// An invalid policy is refused, and the error names the place.
    #[test]
    fn a_text_that_is_no_policy_is_refused() {
        let refused = |text: &str| body(text.as_bytes(), &settings()).unwrap_err().to_string();
        assert!(refused("{").contains("not valid JSON"));
        assert!(refused("[]").contains("is not an object"));
        assert!(refused("{\"outputs\":[]}").contains("`outputs`, which must be an object"));
        assert!(refused("{\"inputs\":[{}]}").contains("`inputs[0]`, which must be an object with `type`"));
        let dangling =
            refused("{\"outputs\":{\"default\":{}},\"inputs\":[{\"type\":\"x\",\"use_output\":\"other\"}]}");
        assert!(dangling.contains("`inputs[0].use_output: other`"), "{dangling}");
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
        assert!(refused(&deep).contains("nested too deeply in `a`"));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(LONGEST_POLICY));
        assert!(refused(&long).contains("are the most"));
    }
}
