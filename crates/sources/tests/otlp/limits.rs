//! Promises: over HTTP/2 too, what is beyond a limit or a part is answered in the protocol's shape, with the code on which
//! clients come again and the time at which they should; what no time mends has no time in it; and nothing of a limit is
//! held when nobody is there any more.

use crate::body::{gzip, message, traces};
use crate::client::{Answer, Called, JSON, PROTOBUF, TRACES, call, call_to, connect, exchange};
use crate::rig::{Rig, settings};
use bytes::Bytes;
use h2::SendStream;
use h2::client::{ResponseFuture, SendRequest};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tidegate_admission::access::{Access, make};
use tidegate_admission::tenancy::Tenancy;
use tidegate_admission::{Caller, GateRules, Headers, Permit};
use tidegate_arena::Share;
use tidegate_http1::DuplicateHeader;
use tidegate_ledger::Refusal;
use tidegate_limit::{AdmissionTable, LimiterSettings, Moment, PerSecond, TenantLimits, Tenants};

const RETRY_INFO: &[u8] = b"type.googleapis.com/google.rpc.RetryInfo";
const LOUD: (&str, &str) = ("x-scope-orgid", "loud");
const QUIET: (&str, &str) = ("x-scope-orgid", "quiet");

/// A rig with these limits of OTLP, and tenants that `X-Scope-OrgID` names.
fn limited(limits: LimiterSettings) -> Rig {
    ruled(limits, Access::open())
}

fn ruled(limits: LimiterSettings, access: Access) -> Rig {
    Rig::ruled(1 << 30, settings(), |ledger| {
        let tenants = Tenants::new(4, TenantLimits::default(), ledger.clone());
        let header = Some("X-Scope-OrgID".into());
        let tenancy =
            Tenancy { header, default: Some("nobody".into()), required: true, ..Tenancy::default() };
        let table = AdmissionTable::new(vec![(ledger.source("otlp").unwrap(), limits)], Some(tenants));
        GateRules { access, tenancy: Some(tenancy), limits: Some(Arc::new(table)), ..GateRules::default() }
    })
}

/// The seconds of the `RetryInfo` in a `Status` in protobuf, which are its last bytes.
fn retry_info(status: &[u8]) -> Option<u64> {
    let at = status.windows(RETRY_INFO.len()).position(|window| window == RETRY_INFO)?;
    let [0x12, value, 0x0a, duration, 0x08, seconds @ ..] = &status[at + RETRY_INFO.len()..] else {
        panic!("{status:?}")
    };
    assert_eq!((usize::from(*value), usize::from(*duration)), (seconds.len() + 3, seconds.len() + 1));
    Some(seconds.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f)))
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |byte| DIGITS.iter().position(|known| *known == byte).unwrap() as u32;
    let groups = text.as_bytes().chunks(4).map(|chunk| {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 6 | digit(*byte)) << (6 * (4 - chunk.len()));
        (bits << 8).to_be_bytes()[..chunk.len() - 1].to_vec()
    });
    groups.collect::<Vec<_>>().concat()
}

/// That a call is refused with this code and these words, and whether it is told when to come again.
#[track_caller]
fn assert_refused(answer: &Called, code: u8, words: &str, told: bool) {
    assert_eq!(answer.code, code, "{answer:?}");
    assert!(answer.trailers_only && answer.message.contains(words), "{answer:?}");
    let seconds = answer.details.as_deref().map(base64).and_then(|status| {
        assert_eq!(status[..2], [0x08, code], "the same code in the details");
        retry_info(&status)
    });
    assert_eq!(seconds.is_some(), told, "{answer:?}");
    assert!(seconds.is_none_or(|seconds| (1..=90).contains(&seconds)), "{seconds:?}");
}

#[track_caller]
fn assert_refused_over_http(answer: &Answer, status: u16, words: &str, told: bool) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert!(answer.text().contains(words), "{}", answer.text());
    assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
    assert!(answer.header("date").is_some());
    let seconds: Option<u64> = answer.header("retry-after").map(|seconds| seconds.parse().unwrap());
    assert_eq!(seconds.is_some(), told, "{answer:?}");
    if answer.header("content-type") != Some("application/x-protobuf") {
        let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(json["message"].as_str().unwrap().contains(words), "{json}");
    }
}

#[track_caller]
fn nothing_is_held(rig: &Rig) {
    let table = rig.gate.rules().limits.clone().unwrap();
    for account in table.tenants().unwrap().accounts() {
        let limiter = account.limiter();
        let used = (account.held(), limiter.concurrency(), limiter.in_flight());
        assert_eq!((used, account.page().book().difference()), ((0, 0, 0), 0), "{:?}", account.page());
    }
}

/// A call whose head and first bytes have come, and no more.
async fn begun(
    client: &mut SendRequest<Bytes>,
    tenant: (&str, &str),
    bytes: &[u8],
) -> (ResponseFuture, SendStream<Bytes>) {
    let mut ready = client.clone().ready().await.unwrap();
    let (response, mut stream) = ready.send_request(call_to(TRACES, &[tenant]), false).unwrap();
    stream.send_data(Bytes::copy_from_slice(bytes), false).unwrap();
    (response, stream)
}

/// Waits until a tenant's claims on the limits are these.
async fn until(rig: &Rig, reached: impl Fn(&tidegate_limit::TenantAccount) -> bool) {
    let table = rig.gate.rules().limits.clone().unwrap();
    while !table.tenants().unwrap().accounts().any(&reached) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_beyond_the_rate_gets_a_retry_delay() {
    let rig = limited(LimiterSettings {
        requests: Some(PerSecond { rate: 1, burst: 1 }),
        ..LimiterSettings::default()
    });
    let body = message(false, &traces(1, 1));
    assert_eq!(rig.call(TRACES, &[], &body).await.code, 0);
    // Others may be slow, and tokens come back: what is refused is refused so.
    let mut refusals = 0;
    while refusals < 3 {
        let answer = rig.call(TRACES, &[], &body).await;
        if answer.code != 0 {
            assert_refused(&answer, 8, "requests a second", true);
            refusals += 1;
        }
        for headers in [JSON, PROTOBUF] {
            let body: &[u8] = if headers == JSON { b"{}" } else { b"" };
            let answer = rig.post2("/v1/traces", &[headers], body).await;
            if answer.status != 200 {
                assert_refused_over_http(&answer, 429, "requests a second", true);
            }
        }
    }
    nothing_is_held(&rig);
    assert!(rig.books().refused.iter().all(|(reason, _)| *reason == Refusal::RateLimited));
}

#[tokio::test]
async fn as_many_calls_at_a_time_as_are_allowed() {
    let rig = limited(LimiterSettings { concurrency: Some(1), ..LimiterSettings::default() });
    let body = message(false, &traces(1, 1));
    rig.serve(async |address| {
        let mut client = connect(address).await;
        let (response, mut stream) = begun(&mut client, LOUD, &body[..3]).await;
        until(&rig, |account| account.page().title() == "loud").await;
        assert_refused(&call(&mut client, TRACES, &[QUIET], &body).await, 8, "being served", true);
        let request = http::Request::post("http://test/v1/traces").header(JSON.0, JSON.1).body(()).unwrap();
        let answer = exchange(&mut client, request, b"{}").await.0;
        assert_refused_over_http(&answer, 429, "being served", true);
        stream.send_data(Bytes::copy_from_slice(&body[3..]), true).unwrap();
        let answer = response.await.unwrap();
        assert_eq!(answer.status(), 200);
    })
    .await;
    nothing_is_held(&rig);
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (1, vec![(Refusal::Concurrency, 2)]));
}

/// A call's bytes are known from the length before its message.
#[tokio::test]
async fn as_many_bytes_at_a_time_as_are_allowed() {
    let rig = limited(LimiterSettings { in_flight: Some(10_000), ..LimiterSettings::default() });
    let body = message(false, &traces(10, 800));
    rig.serve(async |address| {
        let mut client = connect(address).await;
        let (response, mut stream) = begun(&mut client, LOUD, &body[..100]).await;
        until(&rig, |account| account.held() > 5000).await;
        assert_refused(&call(&mut client, TRACES, &[QUIET], &body).await, 8, "being received", true);
        let small = message(false, &traces(1, 1));
        assert_eq!(call(&mut client, TRACES, &[QUIET], &small).await.code, 0, "what fits passes");
        stream.send_data(Bytes::copy_from_slice(&body[100..]), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
    })
    .await;
    nothing_is_held(&rig);
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (2, vec![(Refusal::Concurrency, 1)]));
}

/// While memory is short a tenant that holds its part is sent away, and another is not.
#[tokio::test]
async fn calls_beyond_the_fair_share_are_refused_retryably() {
    let rig = limited(LimiterSettings::default());
    let body = message(false, &traces(100, 1000));
    rig.serve(async |address| {
        let mut client = connect(address).await;
        let (response, mut stream) = begun(&mut client, LOUD, &body[..100]).await;
        until(&rig, |account| account.held() > 100_000).await;
        let free = rig.arena.free(Share::Ingest);
        let taken = rig.arena.try_charge(Share::Ingest, free - (140 << 10)).unwrap();
        assert_refused(&call(&mut client, TRACES, &[LOUD], &body).await, 14, "its part of it", true);
        let small = message(false, &traces(1, 1));
        assert_eq!(call(&mut client, TRACES, &[QUIET], &small).await.code, 0, "another passes");
        drop(taken);
        stream.send_data(Bytes::copy_from_slice(&body[100..]), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
    })
    .await;
    nothing_is_held(&rig);
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (2, vec![(Refusal::Share, 1)]));
}

struct Said((&'static str, &'static str));

impl Headers for Said {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
        Ok(Some(self.0.1.as_bytes()).filter(|_| name.eq_ignore_ascii_case(self.0.0)))
    }
}

/// A request of this tenant that was let in.
fn entered(rig: &Rig, tenant: (&'static str, &'static str)) -> Permit {
    let (peer, headers) = (IpAddr::V4(Ipv4Addr::LOCALHOST), Said(tenant));
    let caller = Caller {
        peer,
        certificate: None,
        headers: &headers,
        bytes: Some(1),
        now: Moment::now(),
        guarded: true,
        journalled: true,
    };
    let table = rig.gate.rules().limits.clone().unwrap();
    let mut open = rig.source("otlp").open();
    let passage = rig.gate.admit(&caller, &mut open).unwrap();
    open.accept_empty(tidegate_ledger::Signal::Traces);
    assert!(table.is_active());
    passage
}

/// A decompressed body counts towards the share too, over each of the protocols.
#[tokio::test]
async fn decoded_bytes_beyond_the_fair_share_are_refused_retryably() {
    let rig = limited(LimiterSettings::default());
    let passage = entered(&rig, LOUD);
    let all = rig.arena.free(Share::Decode) as usize;
    // Alone, one may have more than its part: what is left is less than a quarter of it.
    let mut room = rig.gate.decode_buffer(&passage, 4096, false).await.unwrap();
    let mut taken = Some(rig.arena.try_charge(Share::Decode, all as u64 - (3 << 20)).unwrap());
    assert_eq!(room.grow(&rig.gate, (2 << 20) + (512 << 10)), Ok(true));
    let raw = traces(100, 1000);
    let body = gzip(&raw);
    let encoding = ("content-encoding", "gzip");
    let answer = rig.call(TRACES, &[LOUD, ("grpc-encoding", "gzip")], &message(true, &body)).await;
    assert_refused(&answer, 14, "its part of it", true);
    let answer = rig.post2("/v1/traces", &[LOUD, PROTOBUF, encoding], &body).await;
    assert_refused_over_http(&answer, 503, "its part of it", true);
    let answer = rig.post("/v1/traces", &[LOUD, PROTOBUF, encoding], &body).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.text().contains("its part of it") && answer.header("retry-after").is_some());
    let answer = rig.call(TRACES, &[QUIET, ("grpc-encoding", "gzip")], &message(true, &body)).await;
    assert_eq!(answer.code, 0, "another passes");
    // An uncompressed body needs none of it.
    drop((room, taken.take()));
    drop(passage);
    nothing_is_held(&rig);
    assert_eq!(rig.books().refused, [(Refusal::Share, 3)]);
}

#[tokio::test]
async fn unauthorized_clients_get_a_final_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let (file, made, other) = (dir.path().join("credentials"), make(None).unwrap(), make(None).unwrap());
    let lines = format!("bearer agents {} tenant=shop\nbearer others {}\n", made.kept, other.kept);
    std::fs::write(&file, lines).unwrap();
    let rig = ruled(LimiterSettings::default(), Access::from_file(&file, None).unwrap());
    let body = message(false, &traces(1, 1));
    let bearer = format!("Bearer {}", made.secret);
    let known = ("authorization", bearer.as_str());
    for headers in [vec![], vec![("authorization", "Bearer wrong")]] {
        assert_refused(&rig.call(TRACES, &headers, &body).await, 16, "", false);
        let answer = rig.post2("/v1/traces", &[&headers[..], &[JSON]].concat(), b"{}").await;
        assert_refused_over_http(&answer, 401, "", false);
        assert!(answer.header("www-authenticate").is_some(), "{answer:?}");
    }
    assert_refused(&rig.call(TRACES, &[known, LOUD], &body).await, 7, "", false);
    assert_refused_over_http(&rig.post2("/v1/traces", &[known, LOUD, JSON], b"{}").await, 403, "", false);
    assert_eq!(rig.call(TRACES, &[known], &body).await.code, 0);
    assert_eq!(rig.call(TRACES, &[known, ("x-scope-orgid", "shop")], &body).await.code, 0);
    // A client that names no tenant acts for the default one, and is told how to name one.
    let bearer = format!("Bearer {}", other.secret);
    let nameless = ("authorization", bearer.as_str());
    assert_refused(&rig.call(TRACES, &[nameless, LOUD], &body).await, 7, "tenant=NAME", false);
    assert_eq!(rig.call(TRACES, &[nameless], &body).await.code, 0);
    // Nobody sends again what was accepted before where no admin is known.
    let again = ("tidegate-tenant", "shop");
    assert_refused(&rig.call(TRACES, &[known, again], &body).await, 7, "admin_credentials_file", false);
    nothing_is_held(&rig);
    assert_eq!(rig.books().refused, [(Refusal::Unauthorized, 4), (Refusal::Forbidden, 4)]);
}

/// A refusal that a retry cannot fix has no delay: `RESOURCE_EXHAUSTED` with `RetryInfo` would be retried forever.
#[tokio::test]
async fn too_large_stays_too_large() {
    let rig = limited(LimiterSettings { request_items: Some(2), ..LimiterSettings::default() });
    let body = traces(3, 1);
    assert_refused(&rig.call(TRACES, &[], &message(false, &body)).await, 8, "too many", false);
    assert_refused_over_http(&rig.post2("/v1/traces", &[PROTOBUF], &body).await, 413, "too many", false);
    let announced = [&[0][..], &u32::MAX.to_be_bytes()].concat();
    assert_refused(&rig.call(TRACES, &[], &announced).await, 8, "too large", false);
    nothing_is_held(&rig);
    assert_eq!(rig.books().refused, [(Refusal::TooLarge, 3)]);
}
