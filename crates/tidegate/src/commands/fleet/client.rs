//! The operators' routes of a running gateway.

use crate::Failure;
use crate::cli::FleetArgs;
use crate::commands::admin::{Admin, Download};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

/// How long the gateway may take: an action for many agents is many writes.
const WAIT: Duration = Duration::from_secs(60);

/// A gateway that is asked.
pub(super) struct Client {
    admin: Admin,
    /// What the routes begin with.
    prefix: &'static str,
    /// What they are for, and the setting below `listen` that makes them be there.
    name: &'static str,
    setting: &'static str,
}

impl Client {
    pub(super) fn new(args: &FleetArgs) -> Result<Client, Failure> {
        Client::of(args, "/fleet/", ("fleet", "fleet"))
    }

    /// For the routes of OpAMP.
    pub(super) fn opamp(args: &FleetArgs) -> Result<Client, Failure> {
        Client::of(args, "/opamp/", ("OpAMP", "opamp"))
    }

    fn of(
        args: &FleetArgs,
        prefix: &'static str,
        (name, setting): (&'static str, &'static str),
    ) -> Result<Client, Failure> {
        Ok(Client { admin: Admin::named(&args.admin, &args.config)?, prefix, name, setting })
    }

    pub(super) fn get(&mut self, path: &str) -> Result<Value, Failure> {
        self.ask("GET", path, None)
    }

    /// All entries of a list that comes in pages: `path` with a query, perhaps an empty one, and the name of the list in an answer.
    pub(super) fn pages(&mut self, path: &str, name: &str) -> Result<Vec<Value>, Failure> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let from = after.as_ref().map_or_else(String::new, |after| format!("&after={}", encoded(after)));
            let mut page = self.get(&format!("{path}{from}"))?;
            if let Some(Value::Array(entries)) = page.get_mut(name).map(Value::take) {
                all.extend(entries);
            }
            let next = page.get("next").and_then(Value::as_str).map(str::to_owned);
            if next.is_none() || next == after {
                return Ok(all);
            }
            after = next;
        }
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

    /// Sends bytes as they are.
    pub(super) fn put_bytes(&mut self, path: &str, content: &[u8]) -> Result<Value, Failure> {
        self.ask_with("PUT", path, Some(content))
    }

    /// Sends a request without content that does something.
    pub(super) fn post_nothing(&mut self, path: &str) -> Result<Value, Failure> {
        self.ask_with("POST", path, Some(b""))
    }

    /// Fetches bytes, however many.
    pub(super) fn download(&mut self, path: &str, into: &mut dyn Write) -> Result<u64, Failure> {
        let target = format!("{}{path}", self.prefix);
        let fetched = self.admin.download(&target, into, WAIT).map_err(|error| self.no_answer(&error))?;
        match fetched {
            Download::Content(bytes) => Ok(bytes),
            Download::Refusal(status, body) => self.answer(status, &body).map(|_| 0),
        }
    }

    fn ask(&mut self, method: &str, path: &str, content: Option<&Value>) -> Result<Value, Failure> {
        let content = content.map(Value::to_string);
        self.ask_with(method, path, content.as_deref().map(str::as_bytes))
    }

    fn ask_with(&mut self, method: &str, path: &str, content: Option<&[u8]>) -> Result<Value, Failure> {
        let asked = self.admin.send(method, &format!("{}{path}", self.prefix), content, WAIT);
        let (status, body) = asked.map_err(|error| self.no_answer(&error))?;
        self.answer(status, &body)
    }

    fn no_answer(&self, error: &io::Error) -> Failure {
        Failure(format!(
            "asking the gateway at {}: {error}; is it running, and is that its `listen.admin`? Name another with --admin, or \
             the configuration with --config",
            self.admin.address()
        ))
    }

    /// What an answer says, or why there is none.
    fn answer(&self, status: u16, body: &str) -> Result<Value, Failure> {
        let answer: Option<Value> = serde_json::from_str(body).ok();
        let error = answer.as_ref().and_then(|answer| answer.get("error")).and_then(Value::as_str);
        match (status, answer.as_ref(), error) {
            // What agents have said may be no JSON for us: it is shown as it is.
            (200, ..) => Ok(answer.unwrap_or_else(|| Value::String(body.trim_end().to_owned()))),
            (401, ..) => {
                Err(Failure(format!("{}: name the file with a token in --admin-token-file", body.trim())))
            }
            (_, _, Some(error)) => Err(Failure(error.to_owned())),
            (404, ..) => Err(Failure(format!(
                "this gateway has no {}: set `listen.{}`, and restart it",
                self.name, self.setting
            ))),
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
