//! The walk through objects and arrays, with a stack of its own.

use std::fmt::Write as _;

use super::Translated;
use super::error::{ErrorAtOffset, OtlpJsonError, OtlpJsonErrorKind, ReadResult};
use super::reader::Reader;
use super::schema::{Field, Kind, LOGS, METRICS, Message, Rule, TRACES};
use super::text::Text;
use super::value::{expect_end, member, numbers, strings};
use super::writer::{LengthCounter, ProtoOutput, Writer};
use crate::otlp::{MAX_DEPTH, Signal};

/// How many messages may be in each other: what the deepest exemplar needs whose attribute has as many maps as
/// [`MAX_DEPTH`] allows, each with an entry and a value, and some, so that the check has the last word.
const LEVELS: usize = 3 * MAX_DEPTH + 22;
/// Those around the message at hand for which there is always room; what nests deeper has some on the heap.
const FEW: usize = 64;
/// Heap bytes of deeply nested values while they are translated.
pub(super) const DEEP_BYTES: usize = LEVELS * size_of::<Packed>();

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

/// A level on the heap.
#[derive(Clone, Copy)]
struct Packed {
    message: &'static Message,
    start: u32,
    seen: u32,
    index: u32,
    next: u8,
    /// The place of the field at hand, where there is one.
    field: u8,
}

const NO_FIELD: u8 = u8::MAX;

impl Packed {
    fn new(level: &Level) -> Self {
        // Bodies are shorter than 4 GiB, and messages have few fields.
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let small = |number: usize| u8::try_from(number).unwrap_or(NO_FIELD);
        let fields = level.message.fields;
        let field = level.field.and_then(|field| fields.iter().position(|known| std::ptr::eq(known, field)));
        Self {
            message: level.message,
            start: narrow(level.start),
            seen: level.seen,
            index: narrow(level.index),
            next: small(level.next),
            field: field.map_or(NO_FIELD, small),
        }
    }

    fn level(self) -> Level {
        Level {
            message: self.message,
            start: self.start as usize,
            seen: self.seen,
            next: usize::from(self.next),
            field: self.message.fields.get(usize::from(self.field)),
            index: self.index as usize,
        }
    }
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
                // A name that does not fit is longer than any known name.
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

/// The allowed next token.
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

/// How many errors are reported at most.
const TOLD: usize = 3;

pub(super) fn translate(signal: Signal, body: &[u8], out: &mut [u8]) -> Result<Translated, OtlpJsonError> {
    let walk = walk(signal, body, Writer::new(out))?;
    Ok(Translated { len: walk.out.len(), refused: walk.refused, errors: walk.errors })
}

pub(super) fn measure(signal: Signal, body: &[u8]) -> Result<usize, OtlpJsonError> {
    walk(signal, body, LengthCounter::default()).map(|walk| walk.out.max_len())
}

fn walk<O: ProtoOutput>(
    signal: Signal,
    body: &[u8],
    out: O,
) -> Result<RequestTranslator<'_, O>, OtlpJsonError> {
    let root = match signal {
        Signal::Traces => &TRACES,
        Signal::Metrics => &METRICS,
        Signal::Logs => &LOGS,
        Signal::Profiles => return Err(ErrorAtOffset::new(0, OtlpJsonErrorKind::Profiles).at(String::new())),
    };
    if simdutf8::basic::from_utf8(body).is_err() {
        let offset = str::from_utf8(body).map_or_else(|error| error.valid_up_to(), str::len);
        return Err(ErrorAtOffset::new(offset, OtlpJsonErrorKind::Utf8).at(String::new()));
    }
    let mut walk = RequestTranslator {
        reader: Reader::new(body),
        out,
        top: Level::new(root, 0),
        around: [Level::new(root, 0); FEW],
        deep: Vec::new(),
        depth: 0,
        item: None,
        refused: 0,
        errors: Vec::new(),
    };
    match walk.run() {
        Ok(()) => Ok(walk),
        Err(wrong) => Err(wrong.at(walk.path())),
    }
}

struct RequestTranslator<'a, O> {
    reader: Reader<'a>,
    out: O,
    top: Level,
    around: [Level; FEW],
    /// Those that have no place there, as many as `depth` is beyond it.
    deep: Vec<Packed>,
    depth: usize,
    /// The item at hand.
    item: Option<ItemStart>,
    /// Items that were left out.
    refused: u64,
    errors: Vec<OtlpJsonError>,
}

/// Where an item began, to go on behind it as if it had not been there.
#[derive(Clone, Copy)]
struct ItemStart {
    at: usize,
    /// The length of the output before it.
    len: usize,
    depth: usize,
}

impl<O: ProtoOutput> RequestTranslator<'_, O> {
    fn run(&mut self) -> ReadResult<()> {
        self.reader.expect(b'{', "an object")?;
        let mut state = State::FirstMember;
        while let Err(wrong) = self.go_on(state) {
            state = self.skip_item(wrong)?;
        }
        expect_end(&mut self.reader)
    }

    /// Leaves the item at hand out, in which something is wrong, and goes on behind it.
    ///
    /// # Errors
    /// When it is not in an item, or when nobody knows where that ends.
    #[cold]
    fn skip_item(&mut self, wrong: ErrorAtOffset) -> ReadResult<State> {
        let Some(ItemStart { at, len, depth }) = self.item.take().filter(|_| !wrong.is_full()) else {
            return Err(wrong);
        };
        let mut behind = self.reader.from(at);
        if behind.skip_bad().is_err() {
            return Err(wrong);
        }
        self.refused += 1;
        if self.errors.len() < TOLD {
            self.errors.push(wrong.at(self.path()));
        }
        self.reader = behind;
        self.out.truncate(len);
        if self.depth > depth
            && let Some(outer) = self.around.get(depth)
        {
            self.top = *outer;
            self.depth = depth;
            self.deep.clear();
        }
        Ok(State::NextElement)
    }

    fn go_on(&mut self, mut state: State) -> ReadResult<()> {
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
        Ok(())
    }

    #[inline]
    fn member(&mut self) -> ReadResult<State> {
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
        if self.reader.peek() == Some(b'n') && self.reader.literal("null") {
            return Ok(State::NextMember);
        }
        let bit = 1u32 << field.choice;
        if self.top.seen & bit != 0 {
            return Err(ErrorAtOffset::new(self.reader.offset(), OtlpJsonErrorKind::Twice));
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
    fn element(&mut self) -> ReadResult<State> {
        let Some(Field { kind: Kind::Message(message), .. }) = self.top.field else {
            return Err(self.reader.unexpected("a field"));
        };
        if message.is_item {
            self.item = Some(ItemStart { at: self.reader.offset(), len: self.out.len(), depth: self.depth });
        }
        self.reader.expect(b'{', "an object")?;
        if self.depth >= LEVELS {
            return Err(ErrorAtOffset::new(self.reader.offset(), OtlpJsonErrorKind::Depth));
        }
        self.out.key(self.top.field.map_or(0, Field::key))?;
        let start = self.out.open(message.length_bytes)?;
        match self.around.get_mut(self.depth) {
            Some(place) => *place = self.top,
            None => self.put_deep(),
        }
        self.depth += 1;
        self.top = Level::new(message, start);
        Ok(State::FirstMember)
    }

    /// Leaves the message that ended; `None` if it was the outermost.
    #[inline]
    fn close(&mut self) -> ReadResult<Option<State>> {
        let Some(depth) = self.depth.checked_sub(1) else { return Ok(None) };
        let outer = match self.around.get(depth) {
            Some(outer) => *outer,
            None => match self.deep.pop() {
                Some(outer) => outer.level(),
                None => return Ok(None),
            },
        };
        self.out.close(self.top.start, self.top.message.length_bytes)?;
        if self.top.message.is_item {
            self.item = None;
        }
        self.top = outer;
        self.depth = depth;
        let is_array = self.top.field.is_some_and(|field| field.rule == Rule::Repeated);
        Ok(Some(if is_array { State::NextElement } else { State::NextMember }))
    }

    /// Keeps the message at hand on the heap.
    #[cold]
    fn put_deep(&mut self) {
        if self.deep.is_empty() {
            self.deep.reserve_exact(LEVELS - FEW);
        }
        self.deep.push(Packed::new(&self.top));
    }

    /// The field at hand, from the outermost message on.
    #[cold]
    fn path(&self) -> String {
        let mut path = String::new();
        // More than that is not shown.
        let around = self.around.get(..self.depth.min(FEW)).unwrap_or_default();
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
