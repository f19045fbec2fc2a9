//! Messages of DNS (RFC 1035): one question, and the records that answer it.

use std::net::IpAddr;

/// The longest name, in octets as they are written in a message.
const LONGEST_NAME: usize = 255;
/// The most compression pointers that are followed in one name: no more than it can have labels.
const MOST_POINTERS: usize = 128;
/// The most aliases that are followed from the name of the question.
const MOST_ALIASES: usize = 16;
const CNAME: u16 = 5;
const INTERNET: u16 = 1;

/// The record types that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum RecordType {
    /// IPv4 addresses.
    A = 1,
    /// IPv6 addresses (RFC 3596).
    Aaaa = 28,
    /// Hosts and ports of a service (RFC 2782).
    Srv = 33,
}

/// An answer's data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Record {
    /// An address.
    Address(IpAddr),
    /// The target and the port of an SRV record.
    Service(String, u16),
}

/// An answer to a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The records: none where the name has none of this type, or does not exist.
    Records(Vec<Record>),
    /// It did not fit a datagram: ask again over TCP.
    Truncated,
    /// The server could not answer: its response code.
    Failed(u8),
}

/// A message that is no answer to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// It is another message: somebody else's, late, or forged.
    Foreign,
    /// It answers this question and cannot be read.
    Malformed,
}

/// Whether DNS can carry `name`: letters, digits, hyphens and underscores, with one dot at the end or none.
pub(crate) fn is_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// The question for records of `kind` of `name`, with recursion desired. The name is one that [`is_name`] accepts.
pub(crate) fn question(id: u16, name: &str, kind: RecordType) -> Vec<u8> {
    let mut message = Vec::with_capacity(name.len() + 18);
    message.extend(id.to_be_bytes());
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.strip_suffix('.').unwrap_or(name).split('.') {
        message.push(u8::try_from(label.len()).unwrap_or(0));
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend((kind as u16).to_be_bytes());
    message.extend(INTERNET.to_be_bytes());
    message
}

/// The answer of `message` to `question`, with no more records than one beyond `most`.
///
/// # Errors
/// [`NoAnswer`].
pub(crate) fn answer(
    message: &[u8],
    question: &[u8],
    kind: RecordType,
    most: usize,
) -> Result<Answer, NoAnswer> {
    let (header, rest) = message.split_at_checked(12).ok_or(NoAnswer::Foreign)?;
    let asked = question.get(12..).ok_or(NoAnswer::Foreign)?;
    let [id, another, flags, code, ..] = *header else { return Err(NoAnswer::Foreign) };
    let is_response = flags & 0x80 != 0;
    if question.get(..2) != Some(&[id, another]) || !is_response {
        return Err(NoAnswer::Foreign);
    }
    let code = code & 15;
    let Some(echo) = rest.get(..asked.len()) else {
        // A server that cannot read a question need not repeat it.
        return if code == 0 { Err(NoAnswer::Malformed) } else { Ok(Answer::Failed(code)) };
    };
    if !echo.eq_ignore_ascii_case(asked) {
        return Err(NoAnswer::Foreign);
    }
    if flags & 2 != 0 {
        return Ok(Answer::Truncated);
    }
    match code {
        // 3: there is no such name.
        0 | 3 => records(message, question, kind, most).map(Answer::Records).ok_or(NoAnswer::Malformed),
        code => Ok(Answer::Failed(code)),
    }
}

/// The records of the question's type that belong to its name, or to the name that this is an alias of; duplicates once, and
/// no more than one beyond `most`.
fn records(message: &[u8], question: &[u8], kind: RecordType, most: usize) -> Option<Vec<Record>> {
    let mut name = Reader { message: question, at: 12 }.name()?;
    let mut aliases = Vec::new();
    let mut resources = Resources::new(message, question.len())?;
    while let Some(resource) = resources.next()? {
        if resource.record_type == CNAME && aliases.len() < MOST_ALIASES {
            aliases.push((resource.owner.clone(), resource.data(message, |data| data.name())?));
        }
    }
    for _ in 0..MOST_ALIASES {
        let Some((_, target)) = aliases.iter().find(|(owner, _)| *owner == name) else { break };
        name.clone_from(target);
    }
    let mut found = Vec::new();
    let mut resources = Resources::new(message, question.len())?;
    while let Some(resource) = resources.next()? {
        if resource.record_type != kind as u16 || resource.owner != name {
            continue;
        }
        let record = resource.data(message, |data| data.record(kind))?;
        if found.len() <= most && record.as_ref().is_some_and(|record| !found.contains(record)) {
            found.extend(record);
        }
    }
    Some(found)
}

/// A resource record.
struct Resource {
    owner: String,
    record_type: u16,
    /// Where its data is.
    from: usize,
    to: usize,
}

impl Resource {
    /// The data, which is read to its end.
    fn data<T>(&self, message: &[u8], read: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Option<T> {
        let mut data = Reader { message, at: self.from };
        let value = read(&mut data)?;
        (data.at == self.to).then_some(value)
    }
}

/// The resource records of an answer.
struct Resources<'a> {
    reader: Reader<'a>,
    left: u16,
}

impl<'a> Resources<'a> {
    /// Those that begin at `at`.
    fn new(message: &'a [u8], at: usize) -> Option<Resources<'a>> {
        let mut header = Reader { message, at: 6 };
        Some(Resources { left: header.u16()?, reader: Reader { message, at } })
    }

    /// The next one of the Internet: `Some(None)` after the last, `None` where it cannot be read.
    fn next(&mut self) -> Option<Option<Resource>> {
        while let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            let owner = self.reader.name()?;
            let record_type = self.reader.u16()?;
            let class = self.reader.u16()?;
            let _time_to_live = self.reader.bytes::<4>()?;
            let length = usize::from(self.reader.u16()?);
            let from = self.reader.at;
            self.reader.skip(length)?;
            if class == INTERNET {
                return Some(Some(Resource { owner, record_type, from, to: self.reader.at }));
            }
        }
        Some(None)
    }
}

/// Reads a message from a position on.
struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes()?))
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.message.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(*bytes)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        let at = self.at.checked_add(count)?;
        (at <= self.message.len()).then(|| self.at = at)
    }

    /// The data of a record; nothing where it says that there is no such service.
    fn record(&mut self, kind: RecordType) -> Option<Option<Record>> {
        Some(match kind {
            RecordType::A => Some(Record::Address(self.bytes::<4>()?.into())),
            RecordType::Aaaa => Some(Record::Address(self.bytes::<16>()?.into())),
            RecordType::Srv => {
                let _priority_and_weight = self.bytes::<4>()?;
                let port = self.u16()?;
                let target = self.name()?;
                // The root says that there is decidedly no such service. A target that is no name cannot be connected to.
                is_name(&target).then_some(Record::Service(target, port))
            }
        })
    }

    /// A name in lower case, without the last dot.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        let (mut at, mut pointers) = (self.at, 0);
        loop {
            let length = *self.message.get(at)?;
            at += 1;
            match length {
                0 => break,
                1..=63 => {
                    let label = self.message.get(at..at + usize::from(length))?;
                    at += label.len();
                    if name.len() + label.len() + 2 > LONGEST_NAME {
                        return None;
                    }
                    if !name.is_empty() {
                        name.push('.');
                    }
                    // Bytes outside of ASCII and dots within a label become what no name that is asked for has.
                    name.extend(label.iter().map(|byte| match byte {
                        b'.' | 0x80.. => '\u{1}',
                        byte => char::from(byte.to_ascii_lowercase()),
                    }));
                }
                0xc0.. => {
                    let target = usize::from(length & 0x3f) << 8 | usize::from(*self.message.get(at)?);
                    at += 1;
                    if pointers == 0 {
                        self.at = at;
                    }
                    pointers += 1;
                    if pointers > MOST_POINTERS {
                        return None;
                    }
                    at = target;
                }
                _ => return None,
            }
        }
        if pointers == 0 {
            self.at = at;
        }
        Some(name)
    }
}

#[cfg(test)]
mod tests;
