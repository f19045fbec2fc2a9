//! A connection over HTTP/2 that tells the system which frames belong together.
//!
//! The codec writes frame by frame, and each write would go on its way at once: for a request of 80 KiB the way
//! through the network would be gone six times. So a frame that others follow is handed over as one of several
//! (`MSG_MORE`), and leaves with them. When the codec stops in between, as the peer's window ends, what is
//! held back is sent.

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg, sockopt};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tower_service::Service;

/// The client's connection preface.
const PREFACE: usize = 24;
/// The head of a frame.
const HEAD: usize = 9;
const DATA: u8 = 0;
const END_STREAM: u8 = 1;

/// Makes connections that gather frames.
#[derive(Clone)]
pub(super) struct CoalescingConnector(pub(super) HttpConnector);

/// A connection.
pub(super) struct CoalescingStream {
    stream: TokioIo<TcpStream>,
    frames: FrameTracker,
    held: Corked,
}

/// Whether the system holds something back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Corked {
    Nothing,
    /// For what is written next.
    More,
    /// Nothing was written since it was to be sent once.
    Again,
}

/// Where in the frames the bytes written so far end.
#[derive(Debug, Clone, Copy)]
struct FrameTracker {
    head: [u8; HEAD],
    known: usize,
    missing: usize,
    /// The frame is a piece of a body that goes on.
    goes_on: bool,
}

impl FrameTracker {
    const BEGIN: FrameTracker = FrameTracker { head: [0; HEAD], known: 0, missing: PREFACE, goes_on: false };

    fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.missing == 0 {
                let wanted = HEAD - self.known;
                let (part, rest) = bytes.split_at(wanted.min(bytes.len()));
                for (to, from) in self.head.iter_mut().skip(self.known).zip(part) {
                    *to = *from;
                }
                (self.known, bytes) = (self.known + part.len(), rest);
                if self.known == HEAD {
                    let [a, b, c, kind, flags, ..] = self.head;
                    (self.known, self.missing) = (0, u32::from_be_bytes([0, a, b, c]) as usize);
                    self.goes_on = kind == DATA && flags & END_STREAM == 0 && self.missing > 0;
                }
            } else {
                let some = self.missing.min(bytes.len());
                self.missing -= some;
                bytes = bytes.get(some..).unwrap_or_default();
            }
        }
    }

    /// Whether it ends with a whole piece of a body that goes on.
    fn promises_more(&self) -> bool {
        self.goes_on && self.missing == 0 && self.known == 0
    }
}

impl CoalescingStream {
    fn new(stream: TokioIo<TcpStream>) -> CoalescingStream {
        CoalescingStream { stream, frames: FrameTracker::BEGIN, held: Corked::Nothing }
    }
}

impl Write for CoalescingStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut after = this.frames;
        slices.iter().for_each(|slice| after.follow(slice));
        let more = after.promises_more();
        let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
        let stream = this.stream.inner();
        let written = loop {
            ready!(stream.poll_write_ready(context))?;
            let sent = stream.try_io(Interest::WRITABLE, || {
                Ok(sendmsg(stream, slices, &mut SendAncillaryBuffer::default(), flags)?)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => break sent?,
            }
        };
        let mut left = written;
        for slice in slices {
            let some = left.min(slice.len());
            this.frames.follow(slice.get(..some).unwrap_or_default());
            left -= some;
        }
        this.held = if more { Corked::More } else { Corked::Nothing };
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The codec calls this after each frame of a body, and once more when it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.held {
            Corked::Nothing => {}
            Corked::More => self.held = Corked::Again,
            Corked::Again => {
                // Setting it again sends what is held back.
                sockopt::set_tcp_nodelay(self.stream.inner(), true)?;
                self.held = Corked::Nothing;
            }
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Read for CoalescingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

impl Connection for CoalescingStream {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl Service<Uri> for CoalescingConnector {
    type Response = CoalescingStream;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<CoalescingStream, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connecting = self.0.call(target);
        Box::pin(async move { Ok(CoalescingStream::new(connecting.await?)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, len: usize) -> Vec<u8> {
        let [.., a, b, c] = len.to_be_bytes();
        let mut frame = vec![a, b, c, kind, flags, 0, 0, 0, 1];
        frame.resize(HEAD + len, 0xff);
        frame
    }

    /// Only behind a piece of a body that goes on is something to be waited for.
    #[test]
    fn more_is_promised_only_where_a_body_goes_on() {
        let begun = [&[0; PREFACE][..], &frame(4, 0, 12)].concat();
        for (last, more) in [
            (frame(DATA, 0, 16_384), true),
            (frame(DATA, END_STREAM, 16_384), false),
            (frame(DATA, 0, 0), false),
            (frame(1, 4, 100), false),
            (frame(8, 0, 4), false),
        ] {
            let bytes = [&begun[..], &frame(1, 4, 100), &last].concat();
            for step in [1, 5, 9, 100, bytes.len()] {
                let mut frames = FrameTracker::BEGIN;
                bytes.chunks(step).for_each(|piece| frames.follow(piece));
                assert_eq!(frames.promises_more(), more, "{:?} in steps of {step}", &last[..HEAD]);
            }
            let mut frames = FrameTracker::BEGIN;
            frames.follow(&bytes[..bytes.len() - 1]);
            assert!(!frames.promises_more(), "half a frame is no end");
        }
    }

    /// Bytes that the codec does not follow up are sent all the same, and soon.
    #[tokio::test]
    async fn what_is_held_back_is_sent_when_nothing_follows() {
        use tokio::io::AsyncReadExt;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        let mut gathering = CoalescingStream::new(TokioIo::new(stream));
        let piece = [&[0; PREFACE][..], &frame(DATA, 0, 300)].concat();
        let mut room = vec![0; 2 * piece.len()];
        std::future::poll_fn(|context| {
            let written = ready!(Pin::new(&mut gathering).poll_write(context, &piece))?;
            assert_eq!((written, gathering.held), (piece.len(), Corked::More));
            // After the frame, and at the end of what there is to be written.
            ready!(Pin::new(&mut gathering).poll_flush(context))?;
            assert_eq!(gathering.held, Corked::Again);
            ready!(Pin::new(&mut gathering).poll_flush(context))?;
            assert_eq!(gathering.held, Corked::Nothing);
            Poll::Ready(io::Result::Ok(()))
        })
        .await
        .unwrap();
        let read = peer.read_exact(&mut room[..piece.len()]).await.unwrap();
        assert_eq!(room[..read], piece);
    }
}
