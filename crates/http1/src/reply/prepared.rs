//! An answer that is put together once, and then only dated.

use super::Reply;
use super::date::{NO_DATE, with_date};
use super::render::{ConnectionHeaders, END, connection, delay, fields, opening, put_text};

/// All bytes of an answer but its date, its delay, and what the connection adds. Made at the start from the reply
/// itself, so that what it writes is to the byte what that would write.
#[derive(Debug)]
pub struct PreparedReply {
    status: u16,
    /// Up to where the connection's line and the delay go, with blanks for the date.
    head: Box<[u8]>,
    /// Where the date goes.
    date: usize,
    /// The end of the head, and the content.
    rest: Box<[u8]>,
}

/// Most bytes of the lines for the connection and the delay.
const MAX_ADDED_BYTES: usize = 64;

impl PreparedReply {
    /// The answer that `reply` is. Its delay is given with each answer.
    pub fn new(reply: &Reply) -> PreparedReply {
        let (mut head, mut rest) = (Vec::new(), END.to_vec());
        opening(reply, &mut head);
        let date = head.len();
        head.extend_from_slice(NO_DATE);
        fields(reply, &mut head);
        if !reply.is_bare() && !put_text(reply, &mut rest) {
            rest.extend_from_slice(reply.content.bytes());
        }
        PreparedReply {
            status: reply.status,
            head: head.into_boxed_slice(),
            date,
            rest: rest.into_boxed_slice(),
        }
    }

    /// Its status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Its content.
    pub fn content(&self) -> &[u8] {
        self.rest.get(END.len()..).unwrap_or_default()
    }

    /// How many bytes it keeps.
    pub fn size(&self) -> usize {
        self.head.len() + self.rest.len()
    }

    #[inline]
    pub(super) fn render(
        &self,
        retry_after: Option<u32>,
        ending: ConnectionHeaders,
        now_ns: u64,
        out: &mut Vec<u8>,
    ) {
        out.reserve(self.size() + MAX_ADDED_BYTES);
        let from = out.len() + self.date;
        out.extend_from_slice(&self.head);
        if let Some(place) = out.get_mut(from..from + NO_DATE.len()) {
            with_date(now_ns, |date| place.copy_from_slice(date));
        }
        connection(ending, out);
        delay(retry_after, out);
        out.extend_from_slice(if ending.bodiless { END } else { &self.rest });
    }
}
