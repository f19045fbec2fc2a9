//! The walk through objects and arrays, with a stack of its own.

use std::fmt::Write as _;

use super::fault::{Fault, Read, Reason, Wrong};
use super::reader::{Reader, Text};
use super::schema::{Field, Kind, LOGS, METRICS, Message, Rule, TRACES};
use super::value::{member, numbers, strings, trailing};
use super::writer::Writer;
use crate::otlp::Signal;

/// How many messages may be in each other: what the deepest exemplar needs whose attribute has as many arrays
/// and maps as [`MAX_DEPTH`](crate::otlp::MAX_DEPTH) allows, and some, so that the check has the last word.
const LEVELS: usize = 112;

/// How much of a path is shown.
const PATH_BYTES: usize = 256;

/// A message of which a part was read.
#[derive(Clone, Copy)]
struct Level {
    message: &'static Message,
    /// Where its content begins in the output.
    start: usize,
    /// Which fields were there: a bit for each number.
    seen: u32,
    /// Where in the table the next field is looked for first.
    next: usize,
    /// The field at hand.
    field: Option<&'static Field>,
    /// The element at hand, if that field is an array.
    index: usize,
}

impl Level {
    const fn new(message: &'static Message, start: usize) -> Self {
        Self { message, start, seen: 0, next: 0, field: None, index: 0 }
    }

    /// The field called `name`.
    fn find(&mut self, name: &Text<'_>) -> Option<&'static Field> {
        let mut unescaped = [0; 32];
        let name = match name.plain() {
            Some(plain) => plain,
            None => {
                let mut out = Writer::new(&mut unescaped);
                // What has no room there is longer than any name that is known.
                name.unescape(|piece| out.put(piece)).ok()?;
                let len = out.len();
                unescaped.get(..len)?
            }
        };
        let at = self.message.fields.iter().position(|field| field.name.as_bytes() == name)?;
        self.next = at + 1;
        self.message.fields.get(at)
    }
}

/// What may come next.
#[derive(Clone, Copy)]
enum State {
    /// A member, or the end of an object that has none yet.
    FirstMember,
    /// A comma and a member, or the end of an object.
    NextMember,
    /// An element of an array of messages.
    Element,
    /// A comma and an element, or the end of an array of messages.
    NextElement,
}

pub(super) fn translate(signal: Signal, body: &[u8], out: &mut [u8]) -> Result<usize, Fault> {
    let root = match signal {
        Signal::Traces => &TRACES,
        Signal::Metrics => &METRICS,
        Signal::Logs => &LOGS,
        Signal::Profiles => return Err(Wrong::new(0, Reason::Profiles).at(String::new())),
    };
    if simdutf8::basic::from_utf8(body).is_err() {
        let offset = str::from_utf8(body).map_or_else(|error| error.valid_up_to(), str::len);
        return Err(Wrong::new(offset, Reason::Utf8).at(String::new()));
    }
    let mut walk = Walk {
        reader: Reader::new(body),
        out: Writer::new(out),
        top: Level::new(root, 0),
        around: [Level::new(root, 0); LEVELS],
        depth: 0,
    };
    match walk.run() {
        Ok(()) => Ok(walk.out.len()),
        Err(wrong) => Err(wrong.at(walk.path())),
    }
}

struct Walk<'a, 'b> {
    reader: Reader<'a>,
    out: Writer<'b>,
    top: Level,
    around: [Level; LEVELS],
    depth: usize,
}

impl Walk<'_, '_> {
    fn run(&mut self) -> Read<()> {
        self.reader.expect(b'{', "an object")?;
        let mut state = State::FirstMember;
        loop {
            state = match state {
                State::FirstMember if self.reader.take(b'}') => match self.close()? {
                    Some(state) => state,
                    None => break,
                },
                State::FirstMember => self.member()?,
                State::NextMember => {
                    self.top.field = None;
                    if self.reader.take(b',') {
                        self.member()?
                    } else {
                        self.reader.expect(b'}', "`,` or `}`")?;
                        match self.close()? {
                            Some(state) => state,
                            None => break,
                        }
                    }
                }
                State::Element => self.element()?,
                State::NextElement => {
                    self.top.index += 1;
                    if self.reader.take(b',') {
                        State::Element
                    } else {
                        self.reader.expect(b']', "`,` or `]`")?;
                        State::NextMember
                    }
                }
            };
        }
        trailing(&mut self.reader)
    }

    #[inline]
    fn member(&mut self) -> Read<State> {
        self.reader.peek();
        let field = match self.top.message.fields.get(self.top.next) {
            Some(field) if self.reader.take_name(field.name) => {
                self.top.next += 1;
                Some(field)
            }
            _ => {
                let name = self.reader.name()?;
                name.check()?;
                self.top.find(&name)
            }
        };
        let Some(field) = field else {
            self.reader.skip()?;
            return Ok(State::NextMember);
        };
        self.top.field = Some(field);
        if self.reader.peek() == Some(b'n') && self.reader.word("null") {
            return Ok(State::NextMember);
        }
        let bit = 1u32 << field.choice;
        if self.top.seen & bit != 0 {
            return Err(Wrong::new(self.reader.offset(), Reason::Twice));
        }
        self.top.seen |= bit;
        match (field.kind, field.rule) {
            (Kind::Message(_), Rule::Repeated) => {
                self.reader.expect(b'[', "an array")?;
                self.top.index = 0;
                if self.reader.take(b']') {
                    return Ok(State::NextMember);
                }
                return Ok(State::Element);
            }
            (Kind::Message(_), _) => return self.element(),
            (Kind::String, Rule::Repeated) => {
                self.top.index = 0;
                strings(&mut self.reader, &mut self.out, field, &mut self.top.index)?;
            }
            (_, Rule::Repeated) => {
                self.top.index = 0;
                numbers(&mut self.reader, &mut self.out, field, &mut self.top.index)?;
            }
            _ => member(&mut self.reader, &mut self.out, field)?,
        }
        Ok(State::NextMember)
    }

    /// Goes into the message that comes next, in the field at hand.
    #[inline]
    fn element(&mut self) -> Read<State> {
        let Some(Field { kind: Kind::Message(message), .. }) = self.top.field else {
            return Err(self.reader.unexpected("a field"));
        };
        self.reader.expect(b'{', "an object")?;
        let Some(place) = self.around.get_mut(self.depth) else {
            return Err(Wrong::new(self.reader.offset(), Reason::Depth));
        };
        self.out.key(self.top.field.map_or(0, Field::key))?;
        let start = self.out.open(message.length_bytes)?;
        *place = self.top;
        self.depth += 1;
        self.top = Level::new(message, start);
        Ok(State::FirstMember)
    }

    /// Leaves the message that ended; `None` if it was the outermost.
    #[inline]
    fn close(&mut self) -> Read<Option<State>> {
        let Some(depth) = self.depth.checked_sub(1) else { return Ok(None) };
        let Some(outer) = self.around.get(depth) else { return Ok(None) };
        self.out.close(self.top.start, self.top.message.length_bytes)?;
        self.top = *outer;
        self.depth = depth;
        let is_array = self.top.field.is_some_and(|field| field.rule == Rule::Repeated);
        Ok(Some(if is_array { State::NextElement } else { State::NextMember }))
    }

    /// The field at hand, from the outermost message on.
    #[cold]
    fn path(&self) -> String {
        let mut path = String::new();
        let around = self.around.get(..self.depth).unwrap_or_default();
        for level in around.iter().chain([&self.top]) {
            let Some(field) = level.field else { break };
            if path.len() > PATH_BYTES {
                path.push('…');
                break;
            }
            let dot = if path.is_empty() { "" } else { "." };
            // Writing to a string cannot fail.
            let _ = write!(path, "{dot}{}", field.name);
            if field.rule == Rule::Repeated {
                let _ = write!(path, "[{}]", level.index);
            }
        }
        path
    }
}
