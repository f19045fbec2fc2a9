use super::*;
use crate::store::EmbeddedStore;
use std::time::{Duration, Instant};
use tidegate_arena::Floors;

/// Chunks of these files, in bytes.
const CHUNK: usize = 1000;
const QUOTA: u64 = 512 << 10;

struct Rig {
    files: Arc<FleetFiles>,
    store: EmbeddedStore,
    folder: tempfile::TempDir,
}

impl Rig {
    async fn new() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(&folder.path().join("state.redb")).unwrap();
        let files = opened(&store, folder.path()).await;
        Rig { files, store, folder }
    }

    /// As after a crash: what was in memory is gone.
    async fn restarted(self) -> Rig {
        assert!(self.store.close(Instant::now() + Duration::from_secs(10)));
        let store = EmbeddedStore::open(&self.folder.path().join("state.redb")).unwrap();
        let files = opened(&store, self.folder.path()).await;
        Rig { files, store, folder: self.folder }
    }

    async fn begin(&self, client: Client, size: usize) -> Result<FileName, FileError> {
        let file = match client {
            Client::Agent(agent) => FileName::new_upload(agent),
            Client::Operator => FileName::new_for_agents(),
        };
        let order = order(client, &file, size);
        self.files.begin(order).await.map(|()| file)
    }

    /// Sends chunk `number` of this content.
    async fn send(
        &self,
        file: &FileName,
        client: Client,
        number: usize,
        content: &[u8],
    ) -> Result<(), FileError> {
        let chunk = content.chunks(CHUNK).nth(number).unwrap().to_vec();
        let hash = ContentHash::of(&chunk);
        let unfinished = self.files.unfinished(file, client)?;
        self.files.write_chunk(&unfinished, number as u64, Some(hash), chunk).await
    }

    /// A whole upload of this content.
    async fn upload(&self, client: Client, content: &[u8]) -> Result<FileName, FileError> {
        let file = self.begin(client, content.len()).await?;
        for number in 0..content.len().div_ceil(CHUNK) {
            self.send(&file, client, number, content).await?;
        }
        self.files.finish(&file, client, Some(transit_hash(content))).await.map(|_| file)
    }

    async fn content(&self, file: &FileName, range: Option<ByteRange>) -> Result<Vec<u8>, FileError> {
        let mut content = match self.files.download(file, range, Client::Operator).await? {
            OpenedFile::Whole(content) | OpenedFile::Part(content) => content,
            OpenedFile::Unsatisfiable(_) => return Ok(Vec::new()),
        };
        let (total, mut all) = (content.total_bytes().unwrap(), Vec::new());
        while (all.len() as u64) < total {
            let piece = content.next_piece().await.unwrap();
            assert!(!piece.is_empty() && piece.len() <= DOWNLOAD_BYTES);
            all.extend_from_slice(piece);
        }
        Ok(all)
    }

    /// Names in the folder.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("files")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn used(&self) -> u64 {
        self.files.room().0
    }
}

async fn opened(store: &EmbeddedStore, folder: &Path) -> Arc<FleetFiles> {
    let arena = Arena::new(1 << 20, Floors::NONE, 64 << 10, 8, 8).unwrap();
    let settings = FileSettings { quota: QUOTA, max_body: CHUNK, memory: 4000 };
    let store = Arc::new(store.clone());
    FleetFiles::open(&folder.join("files"), store, (settings, PgpKey::default()), arena).await.unwrap()
}

fn order(client: Client, file: &FileName, size: usize) -> FileOrder {
    let agent_id = match client {
        Client::Agent(agent) => Some(agent.to_string()),
        Client::Operator => None,
    };
    let record = FileRecord {
        name: "d.zip".to_owned(),
        mime_type: "application/zip".to_owned(),
        size: size as u64,
        sha256: String::new(),
        created_ms: 0,
        agent_id,
        action_id: None,
    };
    FileOrder { client, file: file.clone(), record }
}

/// Written apart from the code that checks it.
fn transit_hash(content: &[u8]) -> ContentHash {
    let hash = |bytes: &[u8]| ring::digest::digest(&ring::digest::SHA256, bytes);
    let all: Vec<u8> = content.chunks(CHUNK).flat_map(|chunk| hash(chunk).as_ref().to_vec()).collect();
    ContentHash::of(&all)
}

fn agent() -> Client {
    Client::Agent(AgentId::random())
}

fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|at| u8::try_from((at * at / 7) % 251).unwrap()).collect()
}

/// Chunks in any order, and again, make the same file; what was acknowledged is there after a restart.
#[tokio::test]
async fn chunks_come_in_any_order() {
    let (rig, client, content) = (Rig::new().await, agent(), noise(3500));
    let file = rig.begin(client, content.len()).await.unwrap();
    for number in [3, 1, 1, 0, 2, 3] {
        rig.send(&file, client, number, &content).await.unwrap();
    }
    let record = rig.files.finish(&file, client, Some(transit_hash(&content))).await.unwrap();
    assert_eq!(record.sha256, ContentHash::of(&content).text());
    // The answer may have been lost, and another may not ask.
    assert!(rig.files.finish(&file, client, Some(transit_hash(&content))).await.is_ok());
    assert_eq!(rig.files.finish(&file, agent(), None).await.err(), Some(FileError::OfAnother));
    let used = rig.used();
    let rig = rig.restarted().await;
    assert_eq!(rig.content(&file, None).await.unwrap(), content);
    assert_eq!(
        rig.content(&file, Some(ByteRange::From(999, Some(2001)))).await.unwrap(),
        content[999..=2001]
    );
    assert_eq!((rig.used(), used), (LEAST_BYTES, LEAST_BYTES));
}

/// An upload that differs from what its client announced is refused whole: it leaves no bytes and takes no room.
#[tokio::test]
async fn what_does_not_fit_leaves_nothing() {
    let (rig, client, content) = (Rig::new().await, agent(), noise(2500));
    // A chunk is missing.
    let file = rig.begin(client, content.len()).await.unwrap();
    rig.send(&file, client, 0, &content).await.unwrap();
    rig.send(&file, client, 2, &content).await.unwrap();
    assert_eq!(rig.names(), [file.as_str()]);
    let refused = rig.files.finish(&file, client, Some(transit_hash(&content))).await.unwrap_err();
    assert!(refused.to_string().contains("chunk 1 is missing"), "{refused}");
    assert_eq!((rig.names(), rig.used()), (vec![], 0));
    assert_eq!(rig.send(&file, client, 1, &content).await, Err(FileError::Unknown));
    // The hash of the hashes is another.
    let file = rig.begin(client, content.len()).await.unwrap();
    for number in 0..3 {
        rig.send(&file, client, number, &content).await.unwrap();
    }
    let refused = rig.files.finish(&file, client, Some(ContentHash::of(&content))).await.unwrap_err();
    assert!(refused.to_string().contains("hashes is another"), "{refused}");
    assert_eq!((rig.names(), rig.used()), (vec![], 0));
    // The hash of the content is another.
    let mut order = order(Client::Operator, &FileName::new_for_agents(), CHUNK);
    order.record.sha256 = ContentHash::of(b"other").text();
    let file = order.file.clone();
    rig.files.begin(order).await.unwrap();
    rig.send(&file, Client::Operator, 0, &content).await.unwrap();
    let refused = rig.files.finish(&file, Client::Operator, None).await.unwrap_err();
    assert!(refused.to_string().contains("the content has the SHA-256"), "{refused}");
    assert_eq!((rig.names(), rig.used()), (vec![], 0));
    assert!(matches!(rig.content(&file, None).await, Err(FileError::Unknown)));
}

/// A chunk with another hash, length or number is refused, and the right one can still come.
#[tokio::test]
async fn wrong_chunks_are_refused() {
    let (rig, client, content) = (Rig::new().await, agent(), noise(2500));
    let file = rig.begin(client, content.len()).await.unwrap();
    let unfinished = rig.files.unfinished(&file, client).unwrap();
    let write = |number: u64, hash: &[u8], chunk: &[u8]| {
        let (files, unfinished, hash) = (&rig.files, &unfinished, ContentHash::of(hash));
        let chunk = chunk.to_vec();
        async move { files.write_chunk(unfinished, number, Some(hash), chunk).await.unwrap_err().to_string() }
    };
    let (first, last) = (&content[..CHUNK], &content[2 * CHUNK..]);
    assert!(write(0, b"other", first).await.contains("does not have the SHA-256"));
    assert!(write(0, &first[1..], &first[1..]).await.contains("has 999 bytes, and must have 1000"));
    assert!(write(2, first, first).await.contains("has 1000 bytes, and must have 500"));
    assert!(write(3, last, last).await.contains("has 3 chunks"));
    assert!(write(u64::MAX, last, last).await.contains("has 3 chunks"));
    assert!(matches!(rig.files.unfinished(&file, agent()), Err(FileError::OfAnother)));
    for number in 0..3 {
        rig.send(&file, client, number, &content).await.unwrap();
    }
    rig.files.finish(&file, client, Some(transit_hash(&content))).await.unwrap();
    assert_eq!(rig.content(&file, None).await.unwrap(), content);
}

/// Room is taken when an upload begins, is given back with it, and bounds how many files there are.
#[tokio::test]
async fn the_quota_is_kept() {
    let rig = Rig::new().await;
    let too_large = usize::try_from(QUOTA).unwrap() + 1;
    assert!(matches!(rig.begin(agent(), too_large).await, Err(FileError::TooLarge { .. })));
    let (client, size) = (agent(), 240 << 10);
    let first = rig.begin(client, size).await.unwrap();
    rig.begin(agent(), size).await.unwrap();
    let refused = rig.begin(agent(), size).await.unwrap_err();
    assert!(matches!(refused, FileError::Quota { used: 491_520, .. }), "{refused}");
    rig.files.give_up_old(time_later()).await;
    assert!(matches!(rig.files.unfinished(&first, client), Err(FileError::Unknown)));
    assert_eq!(rig.used(), 0);
    let mut small = Vec::new();
    for _ in 0..QUOTA / LEAST_BYTES {
        small.push(rig.upload(agent(), b"x").await.unwrap());
    }
    assert!(matches!(rig.begin(agent(), 1).await, Err(FileError::Quota { .. })));
    let rig = rig.restarted().await;
    assert!(matches!(rig.begin(agent(), 1).await, Err(FileError::Quota { .. })));
    rig.files.remove(&small[0]).await.unwrap();
    assert_eq!(rig.files.remove(&small[0]).await, Err(FileError::Unknown));
    assert!(rig.begin(agent(), 1).await.is_ok());
}

fn time_later() -> u32 {
    crate::time::uptime_s() + 24 * 60 * 60
}

/// One agent cannot use up all the room, neither with a few large uploads nor with many small ones.
#[tokio::test]
async fn an_agent_has_a_part_of_the_room() {
    let (rig, client) = (Rig::new().await, agent());
    let half = usize::try_from(QUOTA / 2).unwrap();
    assert!(matches!(rig.begin(client, half + 1).await, Err(FileError::TooLarge { .. })));
    rig.upload(client, &noise(half / 2)).await.unwrap();
    rig.begin(client, half / 4).await.unwrap();
    assert_eq!(rig.begin(client, half / 2).await, Err(FileError::AgentQuota));
    let other = agent();
    for _ in 0..32 {
        rig.upload(other, b"x").await.unwrap();
    }
    assert_eq!(rig.begin(other, 1).await, Err(FileError::AgentQuota));
    assert!(rig.begin(agent(), 1).await.is_ok());
}

/// One agent cannot have all unfinished uploads.
#[tokio::test]
async fn an_agent_has_some_unfinished_uploads() {
    let (rig, client) = (Rig::new().await, agent());
    for _ in 0..4 {
        rig.begin(client, 1).await.unwrap();
    }
    assert_eq!(rig.begin(client, 1).await, Err(FileError::TooMany("unfinished uploads")));
    assert!(rig.begin(agent(), 1).await.is_ok());
}

/// The start removes unfinished uploads of a crash, and their agents are told to begin anew.
#[tokio::test]
async fn leftovers_of_a_crash_are_removed() {
    let (rig, client, content) = (Rig::new().await, agent(), noise(2500));
    let whole = rig.upload(client, &content).await.unwrap();
    let file = rig.begin(client, content.len()).await.unwrap();
    rig.send(&file, client, 0, &content).await.unwrap();
    assert_eq!(rig.names().len(), 2);
    let rig = rig.restarted().await;
    assert_eq!((rig.names(), rig.used()), (vec![whole.as_str().to_owned()], LEAST_BYTES));
    assert_eq!(rig.send(&file, client, 1, &content).await, Err(FileError::Unknown));
    assert_eq!(rig.content(&whole, None).await.unwrap(), content);
}

/// A disk that takes no more ends the upload, and no bytes stay; the next one works.
#[tokio::test]
async fn a_disk_that_fails_leaves_nothing() {
    let (rig, client, content) = (Rig::new().await, agent(), noise(2500));
    let file = rig.begin(client, content.len()).await.unwrap();
    // Writing there fails as on a full disk.
    let path = rig.files.path(&file);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(rig.send(&file, client, 0, &content).await, Err(FileError::Disk(_))));
    std::fs::remove_dir(&path).unwrap();
    assert_eq!((rig.names(), rig.used()), (vec![], 0));
    assert!(rig.upload(client, &content).await.is_ok());
    let full = FileError::from(io::Error::from(io::ErrorKind::StorageFull));
    assert_eq!(full, FileError::DiskFull);
}

/// Uploads are removed after a week, and only where their bytes are.
#[tokio::test]
async fn old_uploads_are_removed() {
    let (rig, client) = (Rig::new().await, agent());
    let (mine, elsewhere) =
        (rig.upload(client, b"mine").await.unwrap(), rig.upload(client, b"elsewhere").await.unwrap());
    std::fs::remove_file(rig.files.path(&elsewhere)).unwrap();
    let day = 24 * 60 * 60 * 1000;
    rig.files.remove_old(crate::time::now_ms() + 6 * day).await.unwrap();
    assert_eq!(rig.files.list(FileKind::Upload, 10).await.unwrap().len(), 2);
    rig.files.remove_old(crate::time::now_ms() + 8 * day).await.unwrap();
    let left = rig.files.list(FileKind::Upload, 10).await.unwrap();
    assert_eq!((left.len(), left[0].id.as_str()), (1, elsewhere.id()));
    assert!(matches!(rig.content(&mine, None).await, Err(FileError::Unknown)));
    assert!(matches!(rig.content(&elsewhere, None).await, Err(FileError::Unknown)));
    assert!(rig.names().is_empty());
}

/// Downloads that nobody takes are bounded, and give their turn back when they are dropped.
#[tokio::test]
async fn downloads_are_bounded() {
    let rig = Rig::new().await;
    let file = rig.upload(agent(), b"content").await.unwrap();
    let mut open = Vec::new();
    for _ in 0..OPERATOR_DOWNLOADS {
        open.push(rig.files.download(&file, None, Client::Operator).await.unwrap());
    }
    let refused = rig.files.download(&file, None, Client::Operator).await;
    assert!(matches!(refused, Err(FileError::TooMany("downloads"))));
    assert!(rig.files.download(&file, None, agent()).await.is_ok());
    open.pop();
    assert!(rig.files.download(&file, None, Client::Operator).await.is_ok());
}

/// An agent that takes hardly anything for a minute is given up, and its turn is there for others; an operator is not.
#[tokio::test]
async fn a_slow_agent_keeps_nobody_out() {
    let rig = Rig::new().await;
    let file = rig.upload(agent(), &noise(3 * DOWNLOAD_BYTES)).await.unwrap();
    let opened = async |client| match rig.files.download(&file, None, client).await.unwrap() {
        OpenedFile::Whole(content) => content,
        _ => panic!("all of it was asked for"),
    };
    tokio::time::pause();
    let mut slow = Vec::new();
    for _ in 0..DOWNLOADS {
        slow.push(opened(agent()).await);
    }
    slow.push(opened(Client::Operator).await);
    for content in &mut slow {
        assert!(content.next_piece().await.is_ok());
    }
    tokio::time::advance(Duration::from_secs(59)).await;
    for content in &mut slow {
        assert!(content.next_piece().await.is_ok());
    }
    assert!(rig.files.download(&file, None, agent()).await.is_err(), "all turns are taken");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(slow.pop().unwrap().next_piece().await.is_ok());
    for mut content in slow.drain(..) {
        let given_up = content.next_piece().await.map(<[u8]>::len);
        assert_eq!(given_up.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
    assert!(rig.files.download(&file, None, agent()).await.is_ok());
}

/// Chunks in memory are bounded by what half of the memory holds, and one agent leaves half of that to the others.
#[tokio::test]
async fn chunks_in_memory_are_bounded() {
    let rig = Rig::new().await;
    let (one, other, third) = (AgentId::random(), AgentId::random(), AgentId::random());
    let of_one = rig.files.chunk_turn(one).unwrap();
    assert!(matches!(rig.files.chunk_turn(one), Err(FileError::TooMany("chunks"))), "it has its half");
    let of_other = rig.files.chunk_turn(other).unwrap();
    assert!(matches!(rig.files.chunk_turn(third), Err(FileError::TooMany("chunks"))));
    drop((of_one, of_other));
    assert!(rig.files.chunk_turn(one).is_ok());
}

/// A chunk for which there is no turn waits for one, in the order of arrival; behind chunks of its own agent it keeps nobody back.
#[tokio::test]
async fn chunks_wait_for_their_turn() {
    let rig = Rig::new().await;
    let (one, other, third) = (AgentId::random(), AgentId::random(), AgentId::random());
    let client = |port: u16| SocketAddr::from(([192, 0, 2, 1], port));
    let reserve = |agent, port| rig.files.reserve_chunk_turn(agent, client(port));
    let turn = |port| rig.files.reserved_chunk_turn(client(port));
    assert!(reserve(one, 1).is_none() && reserve(other, 2).is_none(), "there are two turns");
    let (of_one, of_other) = (turn(1).unwrap(), turn(2).unwrap());
    let mut again = reserve(one, 3).unwrap();
    let mut of_third = reserve(third, 4).unwrap();
    assert!(polled(&mut again).is_pending() && polled(&mut of_third).is_pending());
    drop(of_other);
    of_third.await;
    let of_third = turn(4).unwrap();
    assert!(polled(&mut again).is_pending(), "its agent has its half");
    drop(of_one);
    again.await;
    assert!(turn(3).is_some() && turn(3).is_none() && turn(5).is_none());
    drop(of_third);

    // Not for ever, not too many of one agent, and nothing is lost with a client that leaves.
    tokio::time::pause();
    let held = (rig.files.chunk_turn(one).unwrap(), rig.files.chunk_turn(other).unwrap());
    let mut waiting: Vec<_> = (10..14).map(|port| reserve(one, port).unwrap()).collect();
    assert!(reserve(one, 14).is_none() && turn(14).is_none());
    assert!(waiting.iter_mut().all(|wait| polled(wait).is_pending()));
    waiting.pop().unwrap().await;
    assert!(turn(13).is_none(), "it has waited for too long");
    let of_other = reserve(other, 16).unwrap();
    assert!(reserve(third, 17).is_none() && turn(17).is_none(), "all together have the memory of four");
    drop((waiting, held, of_other));
    assert!(reserve(one, 15).is_none() && turn(15).is_some());
}

fn polled(future: &mut AdmissionFuture) -> std::task::Poll<()> {
    future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

/// An upload with which nobody goes on gives its room back soon; one that goes on has a day.
#[tokio::test]
async fn idle_uploads_are_given_up() {
    let (rig, client, content) = (Rig::new().await, agent(), noise(2500));
    let file = rig.begin(client, content.len()).await.unwrap();
    let unfinished = rig.files.unfinished(&file, client).unwrap();
    let now_s = crate::time::uptime_s();
    unfinished.seen_at(now_s + 500);
    rig.files.give_up_old(now_s + 1099).await;
    assert!(rig.files.unfinished(&file, client).is_ok(), "its last chunk came less than ten minutes ago");
    unfinished.seen_at(now_s + 24 * 60 * 60);
    rig.files.give_up_old(now_s + 24 * 60 * 60 + 1).await;
    assert_eq!(rig.send(&file, client, 0, &content).await, Err(FileError::Unknown));
    let file = rig.begin(client, content.len()).await.unwrap();
    rig.send(&file, client, 0, &content).await.unwrap();
    rig.files.give_up_old(crate::time::uptime_s() + 600).await;
    assert_eq!(rig.send(&file, client, 1, &content).await, Err(FileError::Unknown));
    assert_eq!((rig.names(), rig.used()), (vec![], 0));
}

/// An agent that begins an upload anew has only the new one; others, and its other actions, keep theirs.
#[tokio::test]
async fn a_new_upload_replaces_the_unfinished_one() {
    let (rig, client) = (Rig::new().await, agent());
    let begin = async |client, action: &str| {
        let Client::Agent(agent) = client else { panic!("an agent") };
        let mut order = order(client, &FileName::new_upload(agent), CHUNK);
        order.record.action_id = Some(action.to_owned());
        let file = order.file.clone();
        rig.files.begin(order).await.unwrap();
        file
    };
    let other = agent();
    let kept = [(client, begin(client, "a").await), (other, begin(other, "b").await)];
    let replaced = begin(client, "b").await;
    let last = begin(client, "b").await;
    assert!(matches!(rig.files.unfinished(&replaced, client), Err(FileError::Unknown)));
    for (client, file) in kept.iter().chain([&(client, last)]) {
        assert!(rig.files.unfinished(file, *client).is_ok());
    }
    assert_eq!((rig.names().len(), rig.used()), (3, 3 * LEAST_BYTES));
}

/// Under another state nothing is removed: the files are refused until theirs is there again.
#[tokio::test]
async fn another_state_does_not_remove_files() {
    let rig = Rig::new().await;
    let (client, content) = (agent(), noise(CHUNK));
    let file = rig.upload(client, &content).await.unwrap();
    let other = EmbeddedStore::open(&rig.folder.path().join("other.redb")).unwrap();
    let arena = Arena::new(1 << 20, Floors::NONE, 64 << 10, 8, 8).unwrap();
    let settings = FileSettings { quota: QUOTA, max_body: CHUNK, memory: 4000 };
    let folder = rig.folder.path().join("files");
    let opened = FleetFiles::open(&folder, Arc::new(other), (settings, PgpKey::default()), arena).await;
    let refused = opened.err().unwrap().to_string();
    assert!(refused.contains("belong to another state of the fleet"), "{refused}");
    let rig = rig.restarted().await;
    assert_eq!(rig.content(&file, None).await.unwrap(), content);
}

/// Names are read as they are written, and what could leave the folder is none.
#[test]
fn names_stay_in_the_folder() {
    let hash = "ab".repeat(32);
    let artifact = FileName::of_artifact("endpoint-trustlist-linux-v1", &hash).unwrap();
    for name in [artifact, FileName::new_upload(AgentId::random()), FileName::new_for_agents()] {
        assert_eq!(FileName::read(name.as_str()), Some(name));
    }
    for id in ["", "../x", "a/b", "a b", &"x".repeat(129)] {
        assert_eq!(FileName::of_artifact(id, &hash), None, "{id}");
    }
    assert_eq!(FileName::of_artifact("id", &hash.to_uppercase()), None);
    assert_eq!(FileName::of_upload("../../etc/passwd"), None);
    assert_eq!(FileName::of_file("../x"), None);
    assert_eq!(FileName::read("é-x"), None);
}

/// A chunk that was on its way when the upload ended changes nothing of what was acknowledged.
#[tokio::test]
async fn a_late_chunk_changes_nothing() {
    let rig = Rig::new().await;
    let (client, content) = (agent(), noise(2 * CHUNK));
    let file = rig.begin(client, content.len()).await.unwrap();
    let unfinished = rig.files.unfinished(&file, client).unwrap();
    for number in 0..2 {
        rig.send(&file, client, number, &content).await.unwrap();
    }
    rig.files.finish(&file, client, Some(transit_hash(&content))).await.unwrap();
    let late = rig.files.write_chunk(&unfinished, 0, None, vec![0; CHUNK]).await;
    assert!(matches!(late, Err(FileError::Exists(_))), "{late:?}");
    assert_eq!(rig.content(&file, None).await.unwrap(), content);
}
