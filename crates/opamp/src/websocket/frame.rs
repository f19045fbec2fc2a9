//! Frames (RFC 6455, section 5): a reader of headers that never reads past what it was given, and a writer.

/// The longest header that a server writes: it masks nothing.
const LONGEST_HEADER: usize = 10;
/// The longest payload of a control frame.
pub(super) const LONGEST_CONTROL: usize = 125;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

/// Why a connection is closed (RFC 6455, section 7.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseCode {
    /// The purpose is fulfilled.
    Normal = 1000,
    /// The server goes away.
    GoingAway = 1001,
    /// A violation of the protocol.
    Protocol = 1002,
    /// A kind of data that is not taken.
    Unsupported = 1003,
    /// A message that cannot be read.
    Invalid = 1007,
    /// The connection's agent is not welcome here, such as one whose other connection has taken its place.
    Policy = 1008,
    /// A message that is too long.
    TooLarge = 1009,
    /// No memory; try again.
    TryAgain = 1013,
}

/// The header of a frame from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) is_final: bool,
    pub(super) opcode: Opcode,
    pub(super) mask: [u8; 4],
    /// Bytes of the header.
    pub(super) header_len: usize,
    /// Bytes of the payload.
    pub(super) payload_len: u64,
}

impl Opcode {
    pub(super) fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }

    fn of(number: u8) -> Option<Opcode> {
        Some(match number {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    fn number(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }
}

impl CloseCode {
    /// The bytes in a close frame.
    pub(super) fn to_bytes(self) -> [u8; 2] {
        (self as u16).to_be_bytes()
    }
}

impl Header {
    /// Reads the header that `bytes` begin with; nothing while it is not all there.
    ///
    /// # Errors
    /// The close code for a frame that a client must not send.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Header>, CloseCode> {
        let Some((&[first, second], rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let opcode = Opcode::of(first & 0x0f).ok_or(CloseCode::Protocol)?;
        let is_final = first & 0x80 != 0;
        let (is_masked, short) = (second & 0x80 != 0, second & 0x7f);
        // No extension was agreed on, so its bits are not set; and a client masks.
        if first & 0x70 != 0
            || !is_masked
            || (opcode.is_control() && (!is_final || usize::from(short) > LONGEST_CONTROL))
        {
            return Err(CloseCode::Protocol);
        }
        let (payload_len, rest) = match short {
            126 => match rest.split_first_chunk() {
                Some((len, rest)) => (u64::from(u16::from_be_bytes(*len)), rest),
                None => return Ok(None),
            },
            127 => match rest.split_first_chunk() {
                Some((len, rest)) => (u64::from_be_bytes(*len), rest),
                None => return Ok(None),
            },
            short => (u64::from(short), rest),
        };
        // A length is written in as few bytes as it takes, and the highest bit is 0.
        let least = match short {
            126 => 126,
            127 => 1 << 16,
            _ => 0,
        };
        if payload_len < least || payload_len >> 63 != 0 {
            return Err(CloseCode::Protocol);
        }
        let Some((mask, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let header_len = bytes.len() - rest.len();
        Ok(Some(Header { is_final, opcode, mask: *mask, header_len, payload_len }))
    }
}

/// Removes the mask from a whole payload.
pub(super) fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    for (byte, mask) in payload.iter_mut().zip(mask.into_iter().cycle()) {
        *byte ^= mask;
    }
}

/// Appends the header of a whole message from a server.
pub(super) fn put_header(out: &mut Vec<u8>, opcode: Opcode, payload_len: usize) {
    out.reserve(LONGEST_HEADER);
    out.push(0x80 | opcode.number());
    match (u8::try_from(payload_len), u16::try_from(payload_len)) {
        (Ok(len), _) if usize::from(len) <= LONGEST_CONTROL => out.push(len),
        (_, Ok(len)) => {
            out.push(126);
            out.extend_from_slice(&len.to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&(payload_len as u64).to_be_bytes());
        }
    }
}
