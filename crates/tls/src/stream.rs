//! A connection with TLS, as a stream of plain bytes.
//!
//! Records are looked at where the kernel keeps them, and taken when they are whole and there is room for what is
//! in them. So there are no plain bytes here that nobody asked for, and an idle connection is its secrets and nothing
//! else. What passes through does so in scratch that each thread has. Only the beginning of a record whose rest has
//! not come is [taken](crate::partial_record) before it can be read.

use crate::partial_record::{MemoryAccount, PartialRecord};
use crate::records::{MAX_PLAINTEXT, MAX_RECORD, RecordHeader, front};
use crate::session::TlsSession;
use rustix::net::{RecvFlags, recv};
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tidegate_http1::{Certificate, Stream};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// Records that are taken at a time.
const MAX_RECORDS_PER_READ: usize = 4;
/// The unit of sending: a record with as many plaintext bytes as it can have.
const WRITE_CHUNK: usize = MAX_PLAINTEXT + 256;
/// The scratch of a thread that serves connections, in bytes.
pub const WORKER_BYTES: usize = MAX_RECORDS_PER_READ * MAX_RECORD + WRITE_CHUNK;
/// The memory of an idle connection in addition to one without TLS, in bytes: its secrets, the client's certificate,
/// and its own task (`cargo test -p tidegate-tls --test idle`).
pub const CONNECTION_BYTES: usize = 6 << 10;

thread_local! {
    /// Where records are read into and opened. Used within one poll only.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; MAX_RECORDS_PER_READ * MAX_RECORD].into_boxed_slice());
    /// Where records are made. Used within one poll only.
    static CIPHERTEXT: RefCell<Box<[u8]>> = RefCell::new(vec![0; WRITE_CHUNK].into_boxed_slice());
}

/// A connection with TLS.
pub struct TlsStream {
    socket: TcpStream,
    session: Box<TlsSession>,
    certificate: Option<Arc<Certificate>>,
    /// Plain bytes beyond the buffer of a reader that cannot be told to bring a larger one; less than a record's.
    over: Vec<u8>,
    room: usize,
    part: Option<Box<PartialRecord>>,
    memory_account: MemoryAccount,
}

/// The bytes taken from the socket.
enum ReadOutcome {
    /// Whole records of so many bytes.
    Records(usize),
    /// There is a record, whose plain bytes need so much room.
    Short(usize),
    /// The beginning of a record is there, and nothing before it.
    Part,
    End,
}

impl TlsStream {
    /// A connection whose handshake is done. Parts of records are paid from `memory_account`.
    pub(crate) fn new(
        socket: TcpStream,
        session: Box<TlsSession>,
        certificate: Option<Certificate>,
        memory_account: MemoryAccount,
    ) -> TlsStream {
        let certificate = certificate.map(Arc::new);
        TlsStream { socket, session, certificate, over: Vec::new(), room: 0, part: None, memory_account }
    }

    /// Whether HTTP/2 was agreed on.
    pub fn is_http2(&self) -> bool {
        self.session.tls().alpn_protocol() == Some(b"h2")
    }

    /// The peer's address.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket.peer_addr()
    }

    /// The names in the certificate that the peer has shown.
    pub fn shared_certificate(&self) -> Option<Arc<Certificate>> {
        self.certificate.clone()
    }

    /// Ready when a read may give something.
    ///
    /// # Errors
    /// When the socket has failed.
    pub fn poll_read_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send_on(context)?;
        if !self.over.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.socket.poll_read_ready(context)
    }

    /// Reads plain bytes into `buffer`; what has no room there is kept where `keep` says so, and left in the socket
    /// otherwise.
    fn poll_plain(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
        keep: bool,
    ) -> Poll<io::Result<usize>> {
        self.send_on(context)?;
        if !self.over.is_empty() {
            return Poll::Ready(Ok(self.take_over(buffer)));
        }
        let room = if keep { buffer.len().max(MAX_RECORD) } else { buffer.len() };
        while !self.session.ended {
            let read = SCRATCH.with_borrow_mut(|scratch| {
                match ready!(self.poll_records(context, scratch, room))? {
                    ReadOutcome::End | ReadOutcome::Part => {
                        self.session.ended = true;
                        Poll::Ready(Ok(Ok(0)))
                    }
                    ReadOutcome::Short(room) => Poll::Ready(Ok(Err(room))),
                    ReadOutcome::Records(len) => {
                        let records = scratch.get_mut(..len).unwrap_or_default();
                        let opened = self.session.open(records, buffer, &mut self.over)?;
                        // Half a message of a handshake that is over is nothing that a client has to say.
                        if opened.used != len && !self.session.ended {
                            self.session.give_up();
                            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                        }
                        Poll::Ready(io::Result::Ok(Ok(opened.plain)))
                    }
                }
            });
            let read = ready!(read).inspect_err(|_| _ = self.send_on(context));
            self.send_on(context)?;
            match read? {
                Ok(0) => {}
                Ok(read) => return Poll::Ready(Ok(read)),
                Err(room) => {
                    self.room = room;
                    return Poll::Ready(Err(io::ErrorKind::WouldBlock.into()));
                }
            }
        }
        Poll::Ready(Ok(0))
    }

    /// Takes records, and parts of them that are charged.
    fn poll_records(
        &mut self,
        context: &mut Context<'_>,
        scratch: &mut [u8],
        room: usize,
    ) -> Poll<io::Result<ReadOutcome>> {
        loop {
            if let Some(part) = &mut self.part {
                ready!(part.poll_whole(&self.socket, context, &self.memory_account))?;
                let record = part.bytes();
                return Poll::Ready(Ok(match front(record, 1, room) {
                    RecordHeader::Short(room) => ReadOutcome::Short(room),
                    _ => {
                        let len = record.len();
                        scratch.iter_mut().zip(record).for_each(|(to, from)| *to = *from);
                        self.part = None;
                        ReadOutcome::Records(len)
                    }
                }));
            }
            match ready!(poll_take(&self.socket, context, scratch, MAX_RECORDS_PER_READ, room))? {
                ReadOutcome::Part => self.part = Some(Box::default()),
                taken => return Poll::Ready(Ok(taken)),
            }
        }
    }

    fn take_over(&mut self, buffer: &mut [u8]) -> usize {
        let read = buffer.len().min(self.over.len());
        buffer.iter_mut().zip(self.over.drain(..read)).for_each(|(to, from)| *to = from);
        if self.over.is_empty() {
            self.over = Vec::new();
        }
        read
    }

    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(context))?;
        let plain = bytes.get(..bytes.len().min(MAX_PLAINTEXT)).unwrap_or_default();
        CIPHERTEXT.with_borrow_mut(|out| {
            let len = self.session.seal(plain, out)?;
            self.send_or_keep(context, out.get(..len).unwrap_or_default())
        })?;
        Poll::Ready(Ok(plain.len()))
    }

    /// Sends records, and keeps what the socket does not take.
    fn send_or_keep(&mut self, context: &mut Context<'_>, records: &[u8]) -> io::Result<()> {
        if !self.session.unsent.is_empty() {
            // Output that arose while they were made, which is rare, was encrypted before them.
            self.session.unsent.extend_from_slice(records);
            return self.send_on(context);
        }
        let written = match Pin::new(&mut self.socket).poll_write(context, records)? {
            Poll::Ready(written) => written,
            Poll::Pending => 0,
        };
        self.session.unsent.extend_from_slice(records.get(written..).unwrap_or_default());
        Ok(())
    }

    /// Ready when nothing waits to be sent.
    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let unsent = &mut self.session.unsent;
        while !unsent.is_empty() {
            let written = ready!(Pin::new(&mut self.socket).poll_write(context, unsent))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            unsent.drain(..written);
        }
        if unsent.capacity() > 0 {
            *unsent = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what can be sent now of what waits.
    fn send_on(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.poll_sent(context) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Ok(()),
        }
    }

    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_sent(context))?;
        self.say_goodbye(context)?;
        ready!(self.poll_sent(context))?;
        Pin::new(&mut self.socket).poll_shutdown(context)
    }

    /// Says that nothing more will come. Saying it again is saying nothing.
    fn say_goodbye(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        CIPHERTEXT.with_borrow_mut(|out| {
            let len = self.session.seal_end(out)?;
            self.send_or_keep(context, out.get(..len).unwrap_or_default())
        })
    }
}

/// Takes whole records of the socket into `scratch`: as many as are there, up to `most` of them and up to `room` plain
/// bytes.
fn poll_take(
    socket: &TcpStream,
    context: &mut Context<'_>,
    scratch: &mut [u8],
    most: usize,
    room: usize,
) -> Poll<io::Result<ReadOutcome>> {
    loop {
        ready!(socket.poll_read_ready(context))?;
        let mut taken = None;
        let looked = socket.try_io(Interest::READABLE, || {
            let (seen, _) = recv(socket, &mut *scratch, RecvFlags::PEEK)?;
            if seen == 0 {
                taken = Some(ReadOutcome::End);
                return Ok(());
            }
            match front(scratch.get(..seen).unwrap_or_default(), most, room) {
                RecordHeader::Whole(len) => {
                    let (len, _) =
                        recv(socket, scratch.get_mut(..len).unwrap_or_default(), RecvFlags::empty())?;
                    taken = Some(ReadOutcome::Records(len));
                    // That was all: so that the next wait is for more, and not for what is not there.
                    if len == seen && seen < scratch.len() {
                        Err(io::ErrorKind::WouldBlock.into())
                    } else {
                        Ok(())
                    }
                }
                RecordHeader::Short(room) => {
                    taken = Some(ReadOutcome::Short(room));
                    Ok(())
                }
                RecordHeader::Part => {
                    taken = Some(ReadOutcome::Part);
                    Ok(())
                }
                RecordHeader::Broken => Err(io::ErrorKind::InvalidData.into()),
            }
        });
        match (taken, looked) {
            (_, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(error)),
            (Some(taken), _) => return Poll::Ready(Ok(taken)),
            (None, _) => {}
        }
    }
}

impl Drop for TlsStream {
    /// Says goodbye where that needs no waiting, so that the peer can tell an end from a cut.
    fn drop(&mut self) {
        if self.session.unsent.is_empty() && self.session.is_open() {
            let _ = self.say_goodbye(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Stream for TlsStream {
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(context)
    }

    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.poll_plain(context, buffer, false)
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(context, bytes)
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(context)
    }

    fn room(&self) -> usize {
        self.room
    }

    fn has_begun(&self) -> bool {
        self.part.is_some()
    }

    fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_deref()
    }

    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        tidegate_http1::poll_closed(&self.socket, context)
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_close(context)
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.poll_plain(context, buffer.initialize_unfilled(), true))?;
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_close(context)
    }
}
