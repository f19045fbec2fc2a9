//! Promises: only who is known is let in; no secret is kept, printed or compared byte by byte; failing has a bound
//! and harms nobody else; a new file is taken over, and a bad one changes nothing.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

struct Rig {
    dir: tempfile::TempDir,
    access: Access,
}

fn rig(text: &str) -> Rig {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials");
    std::fs::write(&file, text).unwrap();
    let access = Access::from_file(&file, Some("X-Api-Key")).unwrap();
    Rig { dir, access }
}

impl Rig {
    fn write(&self, text: &str) {
        let (file, new) = (self.dir.path().join("credentials"), self.dir.path().join("new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    /// By what name and for which tenant, or the reason why not.
    fn ask(&self, authorization: &str) -> Result<(String, Option<String>), Refusal> {
        asked(&self.access, authorization, PEER)
    }
}

/// As a source asks: what has to be waited for first.
fn asked(access: &Access, authorization: &str, peer: IpAddr) -> Result<(String, Option<String>), Refusal> {
    let authorization = Some(authorization.as_bytes());
    // Without waiting: the clock may stand still.
    while access.prepare(authorization, peer).is_some() {
        std::thread::yield_now();
    }
    verdict(access.check(authorization, None, peer))
}

fn verdict(answer: Result<Identity, Rejection>) -> Result<(String, Option<String>), Refusal> {
    let granted = answer.map_err(|refused| refused.reason)?;
    let tenant = match granted.owner() {
        Some(TenantRule::Named(name)) => Some(name.to_string()),
        Some(TenantRule::Any) => Some("*".to_owned()),
        _ => None,
    };
    Ok((granted.name().unwrap_or_default().to_owned(), tenant))
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{name}:{password}")))
}

fn token() -> NewSecret {
    make(None).unwrap()
}

#[test]
fn each_kind_of_credentials_is_known_by_its_own() {
    let (bearer, key, password) =
        (token(), token(), make(Some("correct horse: battery".to_owned())).unwrap());
    let rig = rig(&format!(
        "# a comment\n\n  bearer agents {} tenant=shop\r\napi_key beats-1 {}\nbasic alice {} tenant=lab",
        bearer.kept, key.kept, password.kept
    ));
    let agents = Ok(("agents".to_owned(), Some("shop".to_owned())));
    assert_eq!(rig.ask(&format!("Bearer {}", bearer.secret)), agents);
    assert_eq!(rig.ask(&format!("bearer   {} ", bearer.secret)), agents);
    assert_eq!(rig.ask(&bearer.secret), agents, "in a header of its own a token has no scheme");
    let encoded = BASE64.encode(format!("beats-1:{}", key.secret));
    for written in [&*encoded, encoded.trim_end_matches('=')] {
        assert_eq!(rig.ask(&format!("ApiKey {written}")), Ok(("beats-1".to_owned(), None)));
    }
    let alice = Ok(("alice".to_owned(), Some("lab".to_owned())));
    for _ in 0..3 {
        // The second and third are compared with what the first one left, or the bound on slow hashes would show.
        assert_eq!(rig.ask(&basic("alice", "correct horse: battery")), alice);
    }
    let crossed = [
        format!("Bearer {}", key.secret),
        basic("beats-1", &key.secret),
        basic("agents", &bearer.secret),
        format!("ApiKey {}", BASE64.encode(format!("alice:{}", "correct horse: battery"))),
        basic("alice", "correct horse"),
        basic("Alice", "correct horse: battery"),
    ];
    for crossed in crossed {
        assert_eq!(rig.ask(&crossed), Err(Refusal::Unauthorized), "{crossed}");
    }
}

/// Whatever a header says, it is refused and nothing else happens.
#[test]
fn hostile_headers_are_refused() {
    let known = token();
    let rig = rig(&format!("bearer a {}\nbasic b {}\n", known.kept, token().kept));
    let long = "x".repeat(1 << 20);
    let hostile: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b" ".to_vec(),
        b"Bearer".to_vec(),
        b"Bearer ".to_vec(),
        b"Bearer  \t ".to_vec(),
        format!("Bearer {}x", known.secret).into_bytes(),
        format!("Bearer {}", &known.secret[1..]).into_bytes(),
        format!("Bearer {} {}", known.secret, known.secret).into_bytes(),
        format!("Bearer {}, Bearer x", known.secret).into_bytes(),
        format!("Bearer {}\0", known.secret).into_bytes(),
        format!("Bearer {}", known.kept).into_bytes(),
        known.kept.clone().into_bytes(),
        format!("Bearer {long}").into_bytes(),
        format!("Basic {}", BASE64.encode(&long)).into_bytes(),
        b"Basic".to_vec(),
        b"Basic Og==".to_vec(),
        b"Basic ====".to_vec(),
        b"Basic \xff\xfe".to_vec(),
        format!("Basic {}", BASE64.encode("no colon")).into_bytes(),
        format!("Basic {}", BASE64.encode(b"\xff\xfe:\x80")).into_bytes(),
        format!("Basic {}", BASE64.encode("b:")).into_bytes(),
        format!("Basic {}", BASE64.encode(":")).into_bytes(),
        b"Digest username=\"b\", realm=\"x\"".to_vec(),
        b"Negotiate YII".to_vec(),
        b"\x00\x01\x02".to_vec(),
    ];
    for value in hostile {
        // From everywhere, so that none is refused for having failed before.
        let access = Access::from_file(&rig.dir.path().join("credentials"), None).unwrap();
        let refused = access.check(Some(&value), None, PEER).unwrap_err();
        assert_eq!(refused.reason, Refusal::Unauthorized, "{:?}", String::from_utf8_lossy(&value));
    }
}

#[test]
fn hostile_files_are_refused_with_their_lines_and_without_their_secrets() {
    let digest = token().kept;
    let secret = "hunter2-hunter2-hunter2";
    let long = "n".repeat(151);
    let lines: &[&str] = &[
        "bearer",
        "bearer a",
        &format!("bearer a {secret}"),
        &format!("bearer a sha256:{secret}"),
        &format!("bearer a sha256:{}", "g".repeat(64)),
        &format!("bearer a {digest} tenant="),
        &format!("bearer a {digest} tenant=../etc"),
        &format!("bearer a {digest} tenant=.."),
        &format!("bearer a {digest} tenant=a/b"),
        &format!("bearer a {digest} tenant={long}"),
        &format!("bearer a {digest} {secret}"),
        &format!("bearer a {digest} tenant=a b"),
        &format!("bearer {long} {digest}"),
        &format!("bearer a:b {digest}"),
        &format!("bearer ä {digest}"),
        &format!("BEARER a {digest}"),
        &format!("basic a pbkdf2-sha256:1:{}:{}", "0".repeat(32), "0".repeat(64)),
        &format!("basic a pbkdf2-sha256:4000000000:{}:{}", "0".repeat(32), "0".repeat(64)),
        &format!("basic a pbkdf2-sha256:1000:{}", "0".repeat(32)),
        &format!("bearer a pbkdf2-sha256:1000:{}:{}", "0".repeat(32), "0".repeat(64)),
        &format!("api_key a pbkdf2-sha256:1000:{}:{}", "0".repeat(32), "0".repeat(64)),
        "certificate",
        "certificate CN=",
        "certificate cn=a",
        "certificate L=here",
        "certificate CN=a\u{7}b",
        "certificate CN=a tenant=/",
        "certificate CN=a tenat=x",
        "certificate CN=a tenant=x tenant=y",
        &format!("bearer a {digest} tenant=x tenant=x"),
        &format!("bearer a {digest} tenant=.x"),
        &format!("bearer a {digest} tenant={}", "x".repeat(129)),
        &format!("bearer a {digest} bulk="),
        &format!("bearer a {digest} bulk=index"),
        &format!("bearer a {digest} bulk=script"),
        &format!("bearer a {digest} bulk=update, delete"),
        &format!("bearer a {digest} bulk=update bulk=delete"),
        &format!("bearer a {digest} indices="),
        &format!("bearer a {digest} indices=Logs-*"),
        &format!("bearer a {digest} indices=logs-*,"),
        &format!("bearer a {digest}\nbearer b {digest}"),
        "certificate CN=a\ncertificate CN=a tenant=x",
    ];
    for line in lines {
        let Err(mistakes) = Credentials::parse(format!("# first\n{line}\n").as_bytes()) else {
            panic!("taken: {line}")
        };
        assert!(mistakes.contains("line 2: ") || mistakes.contains("line 3: "), "{mistakes}");
        assert!(!mistakes.contains(secret) && !mistakes.contains(&digest), "{mistakes}");
    }
    let all = "nonsense\n".repeat(10_000);
    assert_eq!(Credentials::parse(all.as_bytes()).err().unwrap().lines().count(), 20);
    assert!(Credentials::parse(b"bearer \xff \xff").is_err());

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("long");
    std::fs::write(&file, "#".repeat((256 << 10) + 1)).unwrap();
    let error = Access::from_file(&file, None).err().unwrap();
    assert!(matches!(error, CredentialsError::TooLong(_)), "{error}");
}

#[test]
fn certificates_are_known_by_the_most_particular_line() {
    let rig = rig("certificate * tenant=rest\ncertificate O=Acme Widgets, Inc. tenant=acme\n\
                   certificate OU=probes\ncertificate CN=probe 7\ttenant=seven\n");
    let certificate = |cn: &str, o: &[&str], ou: &[&str]| Certificate {
        common_name: Some(cn.into()),
        organizations: o.iter().copied().map(Into::into).collect(),
        organizational_units: ou.iter().copied().map(Into::into).collect(),
        valid_until: None,
    };
    let ask = |certificate: &Certificate| verdict(rig.access.check(None, Some(certificate), PEER));
    let known = |name: &str, tenant: Option<&str>| Ok((name.to_owned(), tenant.map(str::to_owned)));
    assert_eq!(
        ask(&certificate("probe 7", &["Acme Widgets, Inc."], &["probes"])),
        known("CN=probe 7", Some("seven"))
    );
    assert_eq!(ask(&certificate("x", &["Acme Widgets, Inc."], &["y", "probes"])), known("OU=probes", None));
    assert_eq!(
        ask(&certificate("x", &["Acme Widgets, Inc."], &[])),
        known("O=Acme Widgets, Inc.", Some("acme"))
    );
    assert_eq!(ask(&certificate("x", &[], &[])), known("*", Some("rest")));
    // Wrong credentials beside a certificate are a mistake, and told as one.
    let both = rig.access.check(Some(b"Bearer no"), Some(&certificate("probe 7", &[], &[])), PEER);
    assert_eq!(verdict(both), Err(Refusal::Unauthorized));
    rig.write("certificate CN=other\n");
    rig.access.reload().unwrap();
    assert_eq!(ask(&certificate("probe 7", &[], &[])), Err(Refusal::Forbidden));
}

/// The options of a line may come in any order, and grant only what they name.
#[test]
fn lines_say_what_a_credential_may_do_over_bulk() {
    let (plain, more) = (token(), token());
    let rig = rig(&format!(
        "bearer plain {}\nbearer more {} indices=logs-*-*,{{tenant}}-* tenant=shop bulk=update,script\n\
         certificate O=Acme Widgets, Inc. \tbulk=delete  indices=.own-* \n",
        plain.kept, more.kept
    ));
    let bulk = |granted: Identity| {
        let (actions, indices) = granted.bulk().unwrap();
        (BulkAction::ALL.map(|action| actions.has(action)), indices.cloned())
    };
    let of = |token: &NewSecret| {
        bulk(rig.access.check(Some(format!("Bearer {}", token.secret).as_bytes()), None, PEER).unwrap())
    };
    assert_eq!(of(&plain), ([false; 4], None));
    let indices = Indices::read("logs-*-*,{tenant}-*").unwrap();
    assert_eq!(of(&more), ([true, false, true, false], Some(indices)));
    assert_eq!(rig.ask(&more.secret).unwrap().1.as_deref(), Some("shop"));
    let certificate =
        Certificate { organizations: Box::new(["Acme Widgets, Inc.".into()]), ..Certificate::default() };
    let shown = rig.access.check(None, Some(&certificate), PEER).unwrap();
    assert_eq!(bulk(shown), ([false, true, false, false], Some(Indices::read(".own-*").unwrap())));
}

/// Failing is told ten times, then there is a wait; tokens that are right are taken all the same, and other
/// addresses are not concerned.
#[tokio::test(start_paused = true)]
async fn failing_has_a_bound_for_each_address() {
    let known = token();
    let rig = rig(&format!("bearer a {}\n", known.kept));
    let wrong = |peer: IpAddr| rig.access.check(Some(b"Bearer wrong"), None, peer).unwrap_err();
    for _ in 0..10 {
        assert_eq!(wrong(PEER).reason, Refusal::Unauthorized);
    }
    let refused = wrong(PEER);
    assert_eq!(refused.reason, Refusal::RateLimited);
    assert!(refused.retry_after.is_some_and(|seconds| (1..=2).contains(&seconds)));
    assert!(rig.ask(&known.secret).is_ok());
    assert_eq!(wrong("198.51.100.1".parse().unwrap()).reason, Refusal::Unauthorized);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(wrong(PEER).reason, Refusal::Unauthorized);

    let network = |host: u16| format!("2001:db8:1:2::{host:x}").parse().unwrap();
    for host in 0..10 {
        assert_eq!(wrong(network(host)).reason, Refusal::Unauthorized);
    }
    assert_eq!(wrong(network(10)).reason, Refusal::RateLimited, "a network is one address");
    // Inventing addresses costs no memory: the table has its size, and the last one has a place.
    for host in 0..100_000_u32 {
        let _ = wrong(IpAddr::V4((0x0a00_0000 + host).into()));
    }
    assert_eq!(wrong("203.0.113.9".parse().unwrap()).reason, Refusal::Unauthorized);
}

/// The stored hash of a password, with so few rounds that a test may have many.
fn kept(password: &str) -> String {
    kept_by(password, 1000)
}

fn kept_by(password: &str, rounds: u32) -> String {
    let mut hash = [0; 32];
    let salt = [7; 16];
    let of = std::num::NonZeroU32::new(rounds).unwrap();
    ring::pbkdf2::derive(ring::pbkdf2::PBKDF2_HMAC_SHA256, of, &salt, password.as_bytes(), &mut hash);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("pbkdf2-sha256:{rounds}:{}:{}", hex(&salt), hex(&hash))
}

impl Rig {
    fn basic_from(&self, host: u8, name: &str, password: &str) -> Result<(), Refusal> {
        asked(&self.access, &basic(name, password), [10, 0, 0, host].into()).map(drop)
    }

    /// Whether a slow hash has to be waited for.
    fn waits(&self, host: u8, name: &str, password: &str) -> bool {
        let value = basic(name, password);
        self.access.prepare(Some(value.as_bytes()), [10, 0, 0, host].into()).is_some()
    }
}

/// Behind one address there may be many, a proxy's: who sends wrong passwords from there does not lock out those who
/// have sent the right one.
#[tokio::test(start_paused = true)]
async fn a_flood_of_wrong_passwords_does_not_lock_out_known_clients() {
    let rig = rig(&format!("basic alice {}\nbasic bob {}\n", kept("a password"), kept("another")));
    assert_eq!(rig.basic_from(1, "alice", "a password"), Ok(()));
    let refusals: Vec<_> =
        (0..100).map(|n| rig.basic_from(1, "alice", &format!("guess {n}")).unwrap_err()).collect();
    assert_eq!(refusals[0], Refusal::Unauthorized);
    assert_eq!(refusals[99], Refusal::RateLimited);
    for _ in 0..100 {
        assert_eq!(rig.basic_from(1, "alice", "a password"), Ok(()));
        assert_eq!(rig.basic_from(1, "alice", "a guess"), Err(Refusal::RateLimited));
    }
    assert_eq!(rig.basic_from(2, "bob", "another"), Ok(()), "elsewhere nothing has changed");
    assert_eq!(
        rig.basic_from(1, "bob", "another"),
        Err(Refusal::RateLimited),
        "who guesses learns nothing any more"
    );
    assert!(!rig.waits(1, "bob", "a guess"), "and costs no slow hash");
}

/// A name that nobody has goes the way that others go, so that nobody learns who there is: it waits for a slow hash of
/// as many rounds, and is told the same.
#[test]
fn unknown_names_take_the_way_of_known_ones() {
    let rig = rig(&format!("basic alice {}\nbasic bob {}\n", kept("a password"), kept("another")));
    assert_eq!(rig.basic_from(1, "alice", "a password"), Ok(()), "alice's is remembered, and bob's is not");
    for (host, name) in [(2, "alice"), (3, "bob"), (4, "nobody"), (5, "Alice"), (6, "")] {
        assert!(rig.waits(host, name, "wrong"), "{name}");
        assert_eq!(rig.basic_from(host, name, "wrong"), Err(Refusal::Unauthorized), "{name}");
        assert!(!rig.waits(host, name, "wrong"), "{name}: what was wrong a moment ago is wrong");
        assert_eq!(rig.basic_from(host, name, "wrong"), Err(Refusal::Unauthorized), "{name}");
    }
    // An unknown name imitates an existing one, chosen by a secret; only existing ones can be imitated.
    let mixed = Credentials::parse(
        format!("basic a {}\nbasic b {}\nbasic c {}\n", kept("x"), kept_by("x", 2000), token().kept)
            .as_bytes(),
    )
    .unwrap();
    let keyed = ProcessKey::new().unwrap();
    let mut seen: Vec<Option<u32>> = (0..1000)
        .map(|n| match mixed.basic(format!("nobody {n}").as_bytes(), &keyed).1 {
            Secret::Password(password) => Some(password.rounds().get()),
            Secret::Digest(_) => None,
        })
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [None, Some(1000), Some(2000)]);
}

/// The worker that asks is not the one that computes: it is free before the hash is there.
#[test]
fn slow_hashes_are_computed_elsewhere() {
    let rig = rig(&format!("basic alice {}\n", kept_by("a password", 200_000)));
    let value = basic("alice", "a password");
    let unprepared = rig.access.check(Some(value.as_bytes()), None, PEER).unwrap_err();
    assert_eq!(unprepared.reason, Refusal::RateLimited, "whoever is asked about it does not compute it");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        while rig.access.check(Some(value.as_bytes()), None, PEER).is_err() {
            if let Some(preparation) = rig.access.prepare(Some(value.as_bytes()), PEER) {
                preparation.await;
            }
        }
    });
    assert!(rig.access.prepare(Some(value.as_bytes()), PEER).is_none(), "once");
    assert!(
        rig.access.prepare(Some(b"Bearer x"), PEER).is_none() && rig.access.prepare(None, PEER).is_none()
    );
}

/// A verified password is remembered across a reload of the file, unless its line changes.
#[test]
fn a_changed_password_is_forgotten() {
    let rig = rig(&format!("basic alice {}\n", kept("a password")));
    assert_eq!(rig.basic_from(1, "alice", "a password"), Ok(()));
    assert_eq!(rig.basic_from(1, "alice", "the next"), Err(Refusal::Unauthorized));
    rig.write(&format!("# other\nbasic alice {}\n", kept("a password")));
    rig.access.reload().unwrap();
    assert!(!rig.waits(1, "alice", "a password"));
    rig.write(&format!("basic alice {}\n", kept("the next")));
    rig.access.reload().unwrap();
    assert_eq!(rig.basic_from(1, "alice", "the next"), Ok(()), "that it was wrong is forgotten, too");
    assert_eq!(rig.basic_from(1, "alice", "a password"), Err(Refusal::Unauthorized));
}

#[test]
fn a_changed_file_is_taken_over_and_a_bad_one_changes_nothing() {
    let (old, new) = (token(), token());
    let rig = rig(&format!("bearer a {}\n", old.kept));
    assert!(!rig.access.reload_if_changed().unwrap());
    rig.write(&format!("bearer a {}\nbearer b {}\n", old.kept, new.kept));
    assert!(!rig.access.reload_if_changed().unwrap(), "it may still be being written");
    assert!(rig.ask(&new.secret).is_err());
    assert!(rig.access.reload_if_changed().unwrap());
    assert!(rig.ask(&old.secret).is_ok() && rig.ask(&new.secret).is_ok());

    rig.write("bearer a nonsense, and longer\n");
    assert!(!rig.access.reload_if_changed().unwrap());
    assert!(rig.access.reload_if_changed().is_err());
    assert!(!rig.access.reload_if_changed().unwrap(), "it is told once");
    assert!(rig.ask(&old.secret).is_ok());
    std::fs::remove_file(rig.dir.path().join("credentials")).unwrap();
    assert!(!rig.access.reload_if_changed().unwrap());
    assert!(rig.access.reload_if_changed().is_err());
    assert!(rig.ask(&old.secret).is_ok());
    rig.write(&format!("bearer b {}\n", new.kept));
    assert!(!rig.access.reload_if_changed().unwrap() && rig.access.reload_if_changed().unwrap());
    assert_eq!(rig.ask(&old.secret), Err(Refusal::Unauthorized), "withdrawn");
}

#[test]
fn without_a_file_everybody_may_send() {
    let access = Access::open();
    assert!(access.is_open() && access.header().is_none());
    let granted = access.check(Some(b"\xff"), None, PEER).unwrap();
    assert_eq!((granted.name(), granted.owner()), (None, None));
}

/// Issues `fleet-1:right` for the tenant `shop`.
struct Issuer;

impl ApiKeyIssuer for Issuer {
    fn verify(&self, id: &[u8], key: &[u8]) -> IssuedKey {
        match (id, key) {
            (b"fleet-1", b"right") => {
                IssuedKey::Valid(Identity::of_issued_key("agent", TenantRule::Named("shop".into())))
            }
            (id, _) if id.starts_with(b"fleet-") => IssuedKey::Invalid,
            _ => IssuedKey::Foreign,
        }
    }
}

/// An issued key is the issuer's alone to judge, with a file and without; all else is as it would be without the issuer.
#[test]
fn issued_keys_are_judged_by_their_issuer() {
    let key = token();
    let rig = rig(&format!("api_key fleet-2 {0}\napi_key beats {0}", key.kept));
    let api_key = |id: &str, key: &str| format!("ApiKey {}", BASE64.encode(format!("{id}:{key}")));
    let known = Ok(("agent".to_owned(), Some("shop".to_owned())));
    for access in [rig.access.clone(), Access::open()] {
        let access = access.with_issuer(Arc::new(Issuer));
        assert_eq!(asked(&access, &api_key("fleet-1", "right"), PEER), known);
        for wrong in [api_key("fleet-1", "wrong"), api_key("fleet-2", &key.secret)] {
            assert_eq!(asked(&access, &wrong, PEER), Err(Refusal::Unauthorized), "{wrong}");
        }
    }
    let access = rig.access.with_issuer(Arc::new(Issuer));
    assert_eq!(asked(&access, &api_key("beats", &key.secret), PEER), Ok(("beats".to_owned(), None)));
    assert_eq!(asked(&access, &api_key("other", "right"), PEER), Err(Refusal::Unauthorized));
    assert_eq!(verdict(access.check(None, None, PEER)), Err(Refusal::Unauthorized));
    let open = Access::open().with_issuer(Arc::new(Issuer));
    assert_eq!(verdict(open.check(None, None, PEER)), Ok((String::new(), None)));
    assert!(open.is_open());
}

/// Invalid issued keys are bounded like other failures, and do not lock out who comes from the same address with a valid one.
#[test]
fn invalid_issued_keys_are_bounded() {
    let access = Access::open().with_issuer(Arc::new(Issuer));
    let api_key = |key: &str| format!("ApiKey {}", BASE64.encode(format!("fleet-1:{key}")));
    let answers: Vec<_> = (0..40).map(|_| asked(&access, &api_key("wrong"), PEER)).collect();
    assert_eq!(answers.first(), Some(&Err(Refusal::Unauthorized)));
    assert_eq!(answers.last(), Some(&Err(Refusal::RateLimited)));
    assert!(asked(&access, &api_key("right"), PEER).is_ok());
}
