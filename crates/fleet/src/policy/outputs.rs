//! Outputs of type `tidegate`: this gateway's Elasticsearch API, with an API key for each agent.
//!
//! Operators write `{"type":"tidegate"}`, perhaps with `hosts` and a `tenant`. Agents get an output of type `elasticsearch`, in which the
//! key is put when the policy goes to the agent.

use super::{InvalidPolicy, parsed};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tidegate_admission::access::TenantRule;
use tidegate_admission::tenancy;

/// The `type` of these outputs.
const GATEWAY: &str = "tidegate";
/// Outputs of this type in a policy.
const MOST_OUTPUTS: usize = 8;
/// Members that would send with other credentials than the agent's own.
const CREDENTIALS: [&str; 3] = ["api_key", "username", "password"];

/// How agents reach this gateway.
#[derive(Debug, Clone, Default)]
pub struct OutputSettings {
    /// The URLs of its Elasticsearch API, where a policy does not name them.
    pub hosts: Vec<String>,
    /// Whether the gateway tells tenants apart.
    pub has_tenants: bool,
}

/// The outputs of a policy as agents get them.
#[derive(Debug)]
pub(super) struct AgentOutputs {
    /// The JSON, cut where the API key of an agent belongs.
    pub(super) parts: Vec<String>,
    /// The tenant of what agents send; `None` when they do not send to this gateway.
    pub(super) tenant: Option<TenantRule>,
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Checks the outputs of type `tidegate`, and adds the hosts where they name none. Returns the JSON to be kept; `None` when it is the
/// one that was given.
///
/// # Errors
/// [`InvalidPolicy`], with the place.
pub(super) fn resolved(
    outputs: &RawValue,
    settings: &OutputSettings,
) -> Result<Option<String>, InvalidPolicy> {
    let invalid = |words: String| InvalidPolicy::Shape(words);
    let mut outputs: BTreeMap<String, Box<RawValue>> =
        parsed(outputs, "has `outputs`, which must be an object, by name of the output")?;
    let (mut count, mut tenant, mut is_changed) = (0, None, false);
    for (name, output) in &mut outputs {
        let Some(mut members) = gateway_members(output) else { continue };
        count += 1;
        if count > MOST_OUTPUTS {
            return Err(invalid(format!("has more than {MOST_OUTPUTS} outputs of type `{GATEWAY}`")));
        }
        if let Some(member) = CREDENTIALS.into_iter().find(|member| members.contains_key(*member)) {
            return Err(invalid(format!(
                "has `outputs.{name}.{member}`, and each agent gets an API key of its own for an output of type `{GATEWAY}`; remove `{member}`"
            )));
        }
        let own = tenant_of(name, &members, settings)?;
        if tenant.get_or_insert(own.clone()) != &own {
            return Err(invalid(format!(
                "has `outputs.{name}` for another tenant than the other outputs of type `{GATEWAY}`; an agent sends for one tenant"
            )));
        }
        if let Some(hosts) = members.get("hosts") {
            let hosts: Vec<&str> = serde_json::from_str(hosts.get()).unwrap_or_default();
            if hosts.is_empty() {
                return Err(invalid(format!(
                    "has `outputs.{name}.hosts`, which must be a list of URLs, such as [\"https://gateway.example:9200\"]"
                )));
            }
            continue;
        }
        if settings.hosts.is_empty() {
            return Err(invalid(format!(
                "has `outputs.{name}` of type `{GATEWAY}` without `hosts`; add them, or set `listen.fleet.elasticsearch_hosts`"
            )));
        }
        let hosts = serde_json::value::to_raw_value(&settings.hosts);
        let hosts = hosts.map_err(|error| InvalidPolicy::Json(error.to_string()))?;
        members.insert("hosts".to_owned(), &hosts);
        *output = serde_json::value::to_raw_value(&members)
            .map_err(|error| InvalidPolicy::Json(error.to_string()))?;
        is_changed = true;
    }
    let json = is_changed.then(|| serde_json::to_string(&outputs)).transpose();
    json.map_err(|error| InvalidPolicy::Json(error.to_string()))
}

/// The outputs that [`resolved`] has accepted, as agents get them.
pub(super) fn for_agents(outputs: &RawValue) -> AgentOutputs {
    let mut agents = AgentOutputs { parts: vec![String::new()], tenant: None };
    let outputs: Members<'_> = serde_json::from_str(outputs.get()).unwrap_or_default();
    agents.push("{");
    for (at, (name, output)) in outputs.iter().enumerate() {
        agents.push_name(at, name);
        match gateway_members(output) {
            Some(members) => agents.push_gateway(&members),
            None => agents.push(output.get()),
        }
    }
    agents.push("}");
    agents
}

impl AgentOutputs {
    fn push(&mut self, text: &str) {
        if let Some(last) = self.parts.last_mut() {
            last.push_str(text);
        }
    }

    /// Writes the name of a member, and the comma between it and the one before.
    fn push_name(&mut self, at: usize, name: &str) {
        let comma = if at == 0 { "" } else { "," };
        self.push(&format!("{comma}{}:", serde_json::Value::from(name)));
    }

    fn push_gateway(&mut self, members: &Members<'_>) {
        let tenant = members.get("tenant").and_then(|name| serde_json::from_str(name.get()).ok());
        self.tenant = Some(tenant.map_or(TenantRule::Default, TenantRule::Named));
        self.push("{\"api_key\":\"");
        self.parts.push("\"".to_owned());
        for (name, value) in members.iter().filter(|(name, _)| *name != "tenant") {
            self.push_name(1, name);
            self.push(if name == "type" { "\"elasticsearch\"" } else { value.get() });
        }
        self.push("}");
    }
}

/// The members of an output, if it is of type `tidegate`.
fn gateway_members(output: &RawValue) -> Option<Members<'_>> {
    let members: Members<'_> = serde_json::from_str(output.get()).ok()?;
    let kind: String = serde_json::from_str(members.get("type")?.get()).ok()?;
    (kind == GATEWAY).then_some(members)
}

fn tenant_of(
    name: &str,
    members: &Members<'_>,
    settings: &OutputSettings,
) -> Result<Option<String>, InvalidPolicy> {
    let Some(tenant) = members.get("tenant") else { return Ok(None) };
    let invalid = |words: String| InvalidPolicy::Shape(format!("has `outputs.{name}.tenant`, {words}"));
    let tenant: String = serde_json::from_str(tenant.get())
        .map_err(|_| invalid("which must be the name of a tenant".to_owned()))?;
    tenancy::validate_name(&tenant).map_err(|_| {
        invalid("which is no name of a tenant: 1 to 128 letters, digits, blanks and -_.!*'():@+=~".to_owned())
    })?;
    if !settings.has_tenants {
        return Err(invalid(
            "and the gateway does not tell tenants apart: set `tenants.header` or another setting under `tenants`".to_owned(),
        ));
    }
    Ok(Some(tenant))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn settings() -> OutputSettings {
        OutputSettings { hosts: vec!["https://gw:9200".to_owned()], has_tenants: true }
    }

    /// Agents get an output that their software knows, with everything that the operator has written and a place for their key.
    #[test]
    fn an_output_to_the_gateway_becomes_one_of_elasticsearch() {
        let written = raw(
            "{\"a\\\"b\":{\"type\":\"logstash\",\"x\":1},\"default\":{\"preset\":\"latency\",\"tenant\":\"shop\",\"type\":\"tidegate\"}}",
        );
        let kept = resolved(&written, &settings()).unwrap().unwrap();
        let outputs = for_agents(&raw(&kept));
        assert!(matches!(&outputs.tenant, Some(TenantRule::Named(name)) if **name == *"shop"));
        let text = outputs.parts.join("id:key");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read,
            serde_json::json!({
                "a\"b": {"type": "logstash", "x": 1},
                "default": {
                    "api_key": "id:key", "type": "elasticsearch", "preset": "latency", "hosts": ["https://gw:9200"],
                },
            })
        );
    }

    #[test]
    fn other_outputs_stay_as_they_are() {
        let written = raw("{\"default\":{\"type\":\"elasticsearch\",\"api_key\":\"x\"}}");
        assert_eq!(resolved(&written, &OutputSettings::default()), Ok(None));
        let outputs = for_agents(&written);
        assert_eq!((outputs.parts, outputs.tenant), (vec![written.get().to_owned()], None));
    }

    #[test]
    fn an_invalid_output_is_refused_with_its_place() {
        let refused = |json: &str, settings| resolved(&raw(json), settings).unwrap_err().to_string();
        let (with, without) = (settings(), OutputSettings::default());
        let credentials = refused("{\"o\":{\"type\":\"tidegate\",\"api_key\":\"x\"}}", &with);
        assert!(credentials.contains("`outputs.o.api_key`"), "{credentials}");
        let hosts = refused("{\"o\":{\"type\":\"tidegate\"}}", &without);
        assert!(hosts.contains("set `listen.fleet.elasticsearch_hosts`"), "{hosts}");
        let hosts = refused("{\"o\":{\"type\":\"tidegate\",\"hosts\":[]}}", &with);
        assert!(hosts.contains("`outputs.o.hosts`"), "{hosts}");
        let tenant = refused("{\"o\":{\"type\":\"tidegate\",\"tenant\":\"../x\"}}", &with);
        assert!(tenant.contains("`outputs.o.tenant`"), "{tenant}");
        let tenant = refused("{\"o\":{\"type\":\"tidegate\",\"hosts\":[\"h\"],\"tenant\":\"x\"}}", &without);
        assert!(tenant.contains("does not tell tenants apart"), "{tenant}");
        let two =
            "{\"o\":{\"type\":\"tidegate\",\"tenant\":\"a\"},\"p\":{\"type\":\"tidegate\",\"tenant\":\"b\"}}";
        assert!(refused(two, &with).contains("another tenant"));
        let many: Vec<String> = (0..9).map(|at| format!("\"o{at}\":{{\"type\":\"tidegate\"}}")).collect();
        assert!(refused(&format!("{{{}}}", many.join(",")), &with).contains("more than 8 outputs"));
    }
}
