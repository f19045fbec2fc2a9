//! `set_semconv_span_name`: names spans by the semantic conventions of OpenTelemetry for HTTP, RPC, databases and messages.

use super::{converter, optional, required};
use crate::machine::Machine;
use crate::machine::arguments::literal;
use crate::memory::Slice;
use crate::ottl::field::{Context, Field};
use crate::ottl::program::Argument;
use crate::ottl::signature::{Effect, Signature, Type};
use crate::value::{Failure, Value};

pub(super) static EDITORS: &[&Signature] = &[&SET_SEMCONV_SPAN_NAME];

/// The versions of the conventions that the names follow.
const VERSIONS: [(u32, u32, u32); 2] = [(1, 37, 0), (1, 43, 0)];

/// `set_semconv_span_name(semconv_version, original_span_name_attribute)`: a span of another kind keeps its name. Output: the
/// attributes that the name is made of.
static SET_SEMCONV_SPAN_NAME: Signature = Signature {
    effects: &[
        Effect::Changes(Context::Span, Field::Name),
        Effect::Changes(Context::Span, Field::Attributes),
        Effect::Reads(Context::Span, Field::Kind),
    ],
    complete: |arguments, constants, _| {
        let text = |at| match literal(arguments, at) {
            Some(Value::Text(text)) => {
                constants.get(text.start as usize..(text.start + text.len) as usize).unwrap_or_default()
            }
            _ => b"none",
        };
        let [first, last] = VERSIONS;
        match version(text(0)) {
            None => Err((0, "the version is none, such as `1.37.0`".into())),
            Some(version) if version < first || version > last => {
                Err((0, "the versions 1.37.0 to 1.43.0 are known".into()))
            }
            _ if text(1).is_empty() => Err((1, "the name of the attribute is empty".into())),
            _ => Ok(()),
        }
    },
    ..converter(
        "set_semconv_span_name",
        &[
            required("semconv_version", Type::LiteralText),
            optional("original_span_name_attribute", Type::LiteralText),
        ],
        Type::Nothing,
        |machine, arguments| name(machine, arguments).map(|()| Value::Nil),
    )
};

/// `1.37.0`, with or without a `v`; what is missing behind the first number is zero.
fn version(text: &[u8]) -> Option<(u32, u32, u32)> {
    let text = str::from_utf8(text).ok()?;
    let mut numbers = text.strip_prefix('v').unwrap_or(text).split('.').map(|number| {
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| is_plain && (number == "0" || !number.starts_with('0')))
    });
    let major = numbers.next()??;
    let (minor, patch) = (numbers.next().unwrap_or(Some(0))?, numbers.next().unwrap_or(Some(0))?);
    numbers.next().is_none().then_some((major, minor, patch))
}

fn name(machine: &mut Machine<'_>, arguments: &[Argument]) -> Result<(), Failure> {
    let Some(name) = Span(machine).name()? else { return Ok(()) };
    let Machine { memory, record, .. } = machine;
    let Value::Text(original) = record.get(memory, Context::Span, Field::Name)? else { return Ok(()) };
    if memory.get(original) == memory.get(name) {
        return Ok(());
    }
    if let Some(Value::Text(key)) = literal(arguments, 1) {
        let table = record.table(memory, Context::Span, Field::Attributes)?;
        table.set(memory, key, Value::Text(original))?;
    }
    record.set(memory, Context::Span, Field::Name, Value::Text(name))
}

/// The current span.
struct Span<'m, 'a>(&'m mut Machine<'a>);

impl Span<'_, '_> {
    /// The name that the conventions give it.
    fn name(&mut self) -> Result<Option<Slice>, Failure> {
        let Machine { memory, record, .. } = &mut *self.0;
        let Value::Int(kind) = record.get(memory, Context::Span, Field::Kind)? else { return Ok(None) };
        let name = match kind {
            // Server and client.
            2 | 3 => {
                let target = if kind == 2 { "http.route" } else { "url.template" };
                let mut name = self.http(target)?;
                if name.is_none() {
                    name = self.rpc()?;
                }
                if name.is_none() && kind == 3 {
                    name = self.database()?;
                }
                if name.is_none() { self.messaging()? } else { name }
            }
            // Producer and consumer.
            4 | 5 => self.messaging()?,
            _ => None,
        };
        Ok(name)
    }

    fn http(&mut self, target: &str) -> Result<Option<Slice>, Failure> {
        let Some(method) = self.either("http.request.method", "http.method")? else { return Ok(None) };
        let target = self.text(target)?;
        // As in Go, an empty method is none.
        self.joined(Some(method), " ", target).map(some)
    }

    fn rpc(&mut self) -> Result<Option<Slice>, Failure> {
        let Some(system) = self.either("rpc.system.name", "rpc.system")? else { return Ok(None) };
        let method = self.either("rpc.method", "rpc.grpc.method")?;
        let service = self.either("rpc.service", "rpc.grpc.service")?;
        match (method, service) {
            (Some(method), Some(service)) => self.joined(Some(service), "/", Some(method)).map(some),
            (Some(method), None) => Ok(some(method)),
            (None, Some(service)) => {
                let all = self.0.memory.store(b"*")?;
                self.joined(Some(service), "/", Some(all)).map(some)
            }
            (None, None) => Ok(some(system)),
        }
    }

    fn database(&mut self) -> Result<Option<Slice>, Failure> {
        let Some(system) = self.either("db.system.name", "db.system")? else { return Ok(None) };
        if let Some(summary) = self.text("db.query.summary")? {
            return Ok(some(summary));
        }
        let operation = self.either("db.operation.name", "db.operation")?.and_then(some);
        let target = self.database_target()?.and_then(some);
        match (operation, target) {
            (None, None) => Ok(some(system)),
            (Some(one), None) | (None, Some(one)) => Ok(Some(one)),
            both => self.joined(both.0, " ", both.1).map(some),
        }
    }

    fn database_target(&mut self) -> Result<Option<Slice>, Failure> {
        let namespace = self.either("db.namespace", "db.name")?.and_then(some);
        for part in ["db.collection.name", "db.stored_procedure.name"] {
            if let Some(part) = self.text(part)? {
                return match namespace {
                    Some(namespace) => self.joined(Some(namespace), ".", Some(part)).map(Some),
                    None => Ok(Some(part)),
                };
            }
        }
        if namespace.is_some() { Ok(namespace) } else { self.server() }
    }

    fn messaging(&mut self) -> Result<Option<Slice>, Failure> {
        let Some(system) = self.text("messaging.system")? else { return Ok(None) };
        let operation = self.either("messaging.operation.name", "messaging.operation")?;
        let destination = self.destination()?.and_then(some);
        match (operation, destination) {
            (Some(operation), Some(_)) => self.joined(Some(operation), " ", destination).map(some),
            (None, Some(destination)) => Ok(some(destination)),
            (Some(operation), None) => Ok(some(operation)),
            (None, None) => Ok(some(system)),
        }
    }

    fn destination(&mut self) -> Result<Option<Slice>, Failure> {
        for (flag, name) in [
            ("messaging.destination.temporary", "(temporary)"),
            ("messaging.destination.anonymous", "(anonymous)"),
        ] {
            if self.value(flag)? == Some(Value::Bool(true)) {
                return self.0.memory.store(name.as_bytes()).map(Some);
            }
        }
        if let Some(template) = self.text("messaging.destination.template")? {
            return Ok(Some(template));
        }
        match self.either("messaging.destination.name", "messaging.destination")? {
            None => self.server(),
            name => Ok(name),
        }
    }

    /// `address:port`.
    fn server(&mut self) -> Result<Option<Slice>, Failure> {
        let Some(address) = self.text("server.address")? else { return Ok(None) };
        let port = self.text("server.port")?;
        self.joined(Some(address), ":", port).map(Some)
    }

    /// An attribute.
    fn value(&mut self, name: &str) -> Result<Option<Value>, Failure> {
        let Machine { memory, record, .. } = &mut *self.0;
        let table = record.table(memory, Context::Span, Field::Attributes)?;
        let mut entries = table.entries().iter();
        let found = entries.find(|entry| memory.get(entry.key) == name.as_bytes());
        Ok(found.map(|entry| entry.value))
    }

    /// The text of an attribute.
    fn text(&mut self, name: &str) -> Result<Option<Slice>, Failure> {
        let value = self.value(name)?;
        value.map(|value| self.0.as_text(value)).transpose()
    }

    /// The text of an attribute, or of the one that older conventions have.
    fn either(&mut self, name: &str, old: &str) -> Result<Option<Slice>, Failure> {
        match self.text(name)? {
            None => self.text(old),
            found => Ok(found),
        }
    }

    /// Both parts with `between`; the first alone where there is no second.
    fn joined(
        &mut self,
        first: Option<Slice>,
        between: &str,
        second: Option<Slice>,
    ) -> Result<Slice, Failure> {
        let first = first.unwrap_or(Slice::EMPTY);
        let Some(second) = second else { return Ok(first) };
        self.0.memory.build(|memory| {
            memory.push_slice(first)?;
            memory.push(between.as_bytes())?;
            memory.push_slice(second)
        })
    }
}

/// A text that is not empty.
fn some(text: Slice) -> Option<Slice> {
    Some(text).filter(|text| text.len > 0)
}
