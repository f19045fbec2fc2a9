//! The operators' routes of a running gateway.

use crate::Failure;
use crate::cli::FleetArgs;
use crate::commands::admin::Admin;
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

/// How long the gateway may take: an action for many agents is many writes.
const WAIT: Duration = Duration::from_secs(60);

/// A gateway that is asked.
pub(super) struct Client(Admin);

impl Client {
    pub(super) fn new(args: &FleetArgs) -> Result<Client, Failure> {
        Ok(Client(Admin::named(&args.admin, &args.config)?))
    }

    pub(super) fn get(&mut self, path: &str) -> Result<Value, Failure> {
        self.ask("GET", path, None)
    }

    pub(super) fn post(&mut self, path: &str, content: &Value) -> Result<Value, Failure> {
        self.ask("POST", path, Some(content))
    }

    pub(super) fn put(&mut self, path: &str, content: &Value) -> Result<Value, Failure> {
        self.ask("PUT", path, Some(content))
    }

    pub(super) fn delete(&mut self, path: &str) -> Result<(), Failure> {
        self.ask("DELETE", path, None).map(drop)
    }

    fn ask(&mut self, method: &str, path: &str, content: Option<&Value>) -> Result<Value, Failure> {
        let content = content.map(Value::to_string);
        let asked =
            self.0.send(method, &format!("/fleet/{path}"), content.as_deref().map(str::as_bytes), WAIT);
        let (status, body) = asked.map_err(|error| {
            Failure(format!(
                "asking the gateway at {}: {error}; is it running, and is that its `listen.admin`? Name another with --admin, or \
                 the configuration with --config",
                self.0.address()
            ))
        })?;
        let answer: Option<Value> = serde_json::from_str(&body).ok();
        let error = answer.as_ref().and_then(|answer| answer.get("error")).and_then(Value::as_str);
        match (status, answer.as_ref(), error) {
            // What agents have said may be no JSON for us: it is shown as it is.
            (200, ..) => Ok(answer.unwrap_or_else(|| Value::String(body.trim_end().to_owned()))),
            (401, ..) => {
                Err(Failure(format!("{}: name the file with a token in --admin-token-file", body.trim())))
            }
            (_, _, Some(error)) => Err(Failure(error.to_owned())),
            (404, ..) => Err(Failure::from("this gateway has no fleet: set `listen.fleet`, and restart it")),
            _ => Err(Failure(body.trim().to_owned())),
        }
    }
}

/// A part of a path.
pub(super) fn encoded(part: &str) -> String {
    part.bytes().fold(String::new(), |mut out, byte| {
        let _ = if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            write!(out, "{}", char::from(byte))
        } else {
            write!(out, "%{byte:02x}")
        };
        out
    })
}
