//! A service that writes down what it is given, and a run of one connection against it.

use crate::pipe::{Client, pipe};
use std::sync::{Arc, Mutex};
use tidegate_arena::{Arena, Floors};
use tidegate_http1::{
    Admitted, Body, ConnectionEnd, Content, ContentPiece, ContentRange, ContentStream, Head, Refusal,
    RefusalContext, Reply, Server, Service, Settings, Shutdown,
};

/// One request as the service saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// Answers by path: `/refuse` is not let in, `/small` takes 10 bytes, `/large` answers with 100,000
/// bytes, `/stream` with as many that are made while they are sent, `/broken` with half of them, `/part` with some of more, `/events` with two events and no end, `/close` ends the connection, anything else is 204.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) seen: Mutex<Vec<Seen>>,
    pub(crate) refused: Mutex<Vec<Refusal>>,
}

impl Service for Record {
    type RequestState = Seen;

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<Seen>, Reply> {
        if head.path() == "/refuse" {
            return Err(Reply::new(401).text("not let in\n"));
        }
        let seen = Seen {
            method: head.method().to_owned(),
            path: head.path().to_owned(),
            query: head.query().map(str::to_owned),
            headers: head.headers().map(|(name, value)| (name.to_owned(), value.to_vec())).collect(),
            body: Vec::new(),
        };
        Ok(Admitted { max_body: if head.path() == "/small" { 10 } else { 1 << 20 }, ticket: seen })
    }

    async fn answer(&self, mut ticket: Seen, body: Body) -> Reply {
        ticket.body = body.to_vec();
        drop(body);
        let reply = match ticket.path.as_str() {
            "/large" => Reply::new(200).content(Content::from(vec![b'x'; 100_000])),
            "/stream" => streamed(200, 100_000, 100_000),
            "/broken" => streamed(200, 100_000, 50_000),
            "/part" => streamed(206, 10, 10),
            "/events" => {
                let stream: Box<dyn ContentStream> = Box::new(Events { left: 2 });
                Reply::new(200).content(stream)
            }
            "/close" => Reply::new(204).closing(),
            "/text" => Reply::new(200).text("some text\n"),
            _ => Reply::new(204),
        };
        self.seen.lock().unwrap().push(ticket);
        reply
    }

    fn refuse(&self, refusal: Refusal, _: RefusalContext<'_, Seen>) -> Reply {
        self.refused.lock().unwrap().push(refusal);
        refusal.reply()
    }
}

/// Announces a number of bytes, and makes another, a thousand at a time.
struct Letters {
    announced: u64,
    left: usize,
}

impl ContentStream for Letters {
    fn total_bytes(&self) -> Option<u64> {
        Some(self.announced)
    }

    fn range(&self) -> Option<ContentRange> {
        (self.announced == 10).then_some(ContentRange::Part { first: 5, last: 14, total: 20 })
    }

    fn next_piece(&mut self) -> ContentPiece<'_> {
        let len = self.left.min(1000);
        self.left -= len;
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(&[b'z'; 1000][..len])
        })
    }
}

/// Two events at once, and then none: nobody knows when the next will be.
struct Events {
    left: usize,
}

impl ContentStream for Events {
    fn total_bytes(&self) -> Option<u64> {
        None
    }

    fn next_piece(&mut self) -> ContentPiece<'_> {
        Box::pin(async move {
            if self.left == 0 {
                std::future::pending::<()>().await;
            }
            self.left -= 1;
            Ok(&b"data: event\n\n"[..])
        })
    }
}

fn streamed(status: u16, announced: u64, left: usize) -> Reply {
    let stream: Box<dyn ContentStream> = Box::new(Letters { announced, left });
    Reply::new(status).content(stream)
}

/// A server with 16 MiB for bodies.
pub(crate) fn server(settings: Settings) -> Arc<Server<Record>> {
    server_with(settings, 16 << 20)
}

/// A server with so much memory for bodies, in windows of at most 2 MiB.
pub(crate) fn server_with(settings: Settings, total: u64) -> Arc<Server<Record>> {
    let arena = Arena::new(total, Floors::NONE, 2 << 20, 256, 256).unwrap();
    Server::new(Record::default(), settings, arena, Shutdown::new())
}

pub(crate) fn peer() -> std::net::SocketAddr {
    ([192, 0, 2, 1], 4000).into()
}

/// The outcome of one connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) ended: ConnectionEnd,
    /// The statuses of the answers, in order.
    pub(crate) statuses: Vec<u16>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) refused: Vec<Refusal>,
}

/// Sends `pieces`, one read each, then closes, and waits for the end. The clock stands still but for
/// deadlines.
pub(crate) fn run<P: AsRef<[u8]>>(pieces: impl IntoIterator<Item = P>) -> Run {
    let (server, client, ended) = talk(pieces);
    outcome(&server, &client, ended)
}

fn talk<P: AsRef<[u8]>>(pieces: impl IntoIterator<Item = P>) -> (Arc<Server<Record>>, Client, ConnectionEnd) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let server = server(Settings::default());
    let (client, pipe) = pipe();
    pieces.into_iter().for_each(|piece| client.send(piece));
    client.close();
    let ended = runtime.unwrap().block_on(server.serve(pipe, peer()));
    let held: u64 = server.arena().usage().shares.iter().map(|share| share.used).sum();
    assert_eq!(held, 0, "a connection that has ended holds no memory");
    (server, client, ended)
}

/// As [`run`], giving the answers as they were sent.
pub(crate) fn answers<P: AsRef<[u8]>>(pieces: impl IntoIterator<Item = P>) -> String {
    String::from_utf8(talk(pieces).1.answers()).unwrap()
}

pub(crate) fn outcome(server: &Server<Record>, client: &Client, ended: ConnectionEnd) -> Run {
    let seen = std::mem::take(&mut *server.service().seen.lock().unwrap());
    let refused = std::mem::take(&mut *server.service().refused.lock().unwrap());
    Run { ended, statuses: statuses(&client.answers()), seen, refused }
}

/// The statuses in a stream of answers. Panics unless it is exactly a sequence of whole answers.
pub(crate) fn statuses(mut answers: &[u8]) -> Vec<u16> {
    let mut statuses = Vec::new();
    while !answers.is_empty() {
        let mut table = [httparse::EMPTY_HEADER; 16];
        let mut response = httparse::Response::new(&mut table);
        let head = match response.parse(answers) {
            Ok(httparse::Status::Complete(head)) => head,
            other => panic!("not an answer ({other:?}): {}", String::from_utf8_lossy(answers)),
        };
        let length = response.headers.iter().find(|header| header.name == "Content-Length");
        let length: usize =
            length.map_or(0, |header| std::str::from_utf8(header.value).unwrap().parse().unwrap());
        statuses.push(response.code.unwrap());
        let rest = &answers[head..];
        // The answer to HEAD has a length and no content; no content here begins as an answer does.
        let bodiless = rest.is_empty() || rest.starts_with(b"HTTP/1.1 ");
        answers = if bodiless { rest } else { &rest[length..] };
    }
    statuses
}
