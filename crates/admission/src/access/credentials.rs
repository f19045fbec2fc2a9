//! The credentials file: one line for each, with its kind, name, hash, tenant and `_bulk` rights.
//!
//! ```text
//! # who          name      what is kept of the secret    what it may do
//! bearer         agents    sha256:…                      tenant=shop
//! bearer         proxy     sha256:…                      tenant=*
//! api_key        beats-1   sha256:…                      bulk=update,pipeline indices=logs-*-*,{tenant}-*
//! basic          alice     pbkdf2-sha256:…               tenant=lab
//! certificate    CN=probe-7                              tenant=lab
//! ```

use super::Certificate;
use super::rights::{BulkActions, Indices};
use super::secret::{Match, Password, ProcessKey, SecretError, StoredSecret, digest};
use std::collections::HashMap;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

/// The longest file. It bounds how many credentials there can be: a line has about a hundred bytes.
const LONGEST: usize = 256 << 10;
/// The most memory of the longest file, in bytes, with its text and the credentials before it while it is read again.
pub(super) const BYTES: usize = 4 << 20;
/// The most bytes of a name.
const NAME: usize = 150;
/// Mistakes that are told at a time.
const MAX_REPORTED_ERRORS: usize = 20;

/// The name and the rights of a credential.
#[derive(Debug)]
pub(super) struct Credential {
    pub(super) name: Box<str>,
    pub(super) may: CredentialOptions,
}

/// The options behind the hash on a line.
#[derive(Debug, Default)]
pub(super) struct CredentialOptions {
    /// The tenant of its requests.
    pub(super) tenant: TenantRule,
    /// Actions over `_bulk` beyond `create` and `index`.
    pub(super) bulk: BulkActions,
    /// The indices it may write to.
    pub(super) indices: Option<Indices>,
    /// Whether this is an operator, who resends dead letters.
    pub(super) operator: bool,
}

/// The tenant of a credential's requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TenantRule {
    /// The default one.
    #[default]
    Default,
    /// This one.
    Named(Box<str>),
    /// Whichever the header names: it is a proxy's.
    Any,
}

/// Everybody who may send.
#[derive(Default)]
pub struct Credentials {
    /// By the first bytes of the token's digest, which tell nothing of the token.
    tokens: HashMap<u64, ([u8; 32], Arc<Credential>)>,
    basic: HashMap<Box<str>, (StoredSecret, Arc<Credential>)>,
    /// Stand-ins for unknown names: one for each known name, whose hash takes as long.
    nobodies: Vec<UnknownPassword>,
    api_keys: HashMap<Box<str>, (StoredSecret, Arc<Credential>)>,
    /// By what a certificate's subject says.
    common_names: HashMap<Box<str>, Arc<Credential>>,
    organizations: HashMap<Box<str>, Arc<Credential>>,
    organizational_units: HashMap<Box<str>, Arc<Credential>>,
    /// Whoever has one that the listener's authority has signed.
    signed: Option<Arc<Credential>>,
}

/// The file of credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// It cannot be read.
    #[error("reading the credentials in {}: {error}", file.display())]
    File {
        /// Which file.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// It is too long.
    #[error("reading the credentials in {}: it is longer than {LONGEST} bytes; one file holds about 2,500", .0.display())]
    TooLong(PathBuf),
    /// It says what cannot be.
    #[error("reading the credentials in {}:\n{mistakes}", file.display())]
    Mistakes {
        /// Which file.
        file: PathBuf,
        /// A line for each.
        mistakes: String,
    },
    /// Secrets cannot be checked.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl Credentials {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Credentials, CredentialsError> {
        let failed = |error| CredentialsError::File { file: path.to_owned(), error };
        let file = std::fs::File::open(path).map_err(failed)?;
        let mut text = Vec::new();
        let mut limited = file.take(LONGEST as u64 + 1);
        std::io::copy(&mut limited, &mut text).map_err(failed)?;
        if text.len() > LONGEST {
            return Err(CredentialsError::TooLong(path.to_owned()));
        }
        Credentials::parse(&text)
            .map_err(|mistakes| CredentialsError::Mistakes { file: path.to_owned(), mistakes })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// A line of text for each mistake, the first few of them. None shows what may be a secret.
    pub fn parse(text: &[u8]) -> Result<Credentials, String> {
        let mut credentials = Credentials::default();
        let mut mistakes = Vec::new();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            if let Err(mistake) = credentials.enter(line) {
                mistakes.push(format!("  line {}: {mistake}\n", number + 1));
                if mistakes.len() == MAX_REPORTED_ERRORS {
                    break;
                }
            }
        }
        credentials.nobodies = nobodies(credentials.basic.values().map(|(kept, _)| kept));
        if mistakes.is_empty() { Ok(credentials) } else { Err(mistakes.concat()) }
    }

    fn enter(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8")?;
        let mut words = line.split_ascii_whitespace();
        let (Some(kind), Some(name)) = (words.next(), words.next()) else {
            return Err(
                "a line begins with `bearer NAME HASH`, `basic NAME HASH`, `api_key ID HASH` or `certificate FIELD=VALUE`",
            );
        };
        if kind == "certificate" {
            return self.enter_certificate(line);
        }
        if !is_name(name) {
            return Err("a name has 1 to 150 visible characters of ASCII, and no `:`");
        }
        let kept = StoredSecret::read(
            words.next().ok_or("the hash of the secret is missing; `tidegate token` makes one")?,
        )?;
        let entry = Arc::new(Credential { name: name.into(), may: CredentialOptions::read(words)? });
        once(match (kind, kept) {
            ("bearer", StoredSecret::Digest(digest)) => {
                self.tokens.insert(key(&digest), (digest, entry)).is_none()
            }
            ("bearer" | "api_key", StoredSecret::Password { .. }) => {
                return Err(
                    "`pbkdf2-sha256` is only for `basic`; for programs, generate a token with `tidegate token`, which is stored as `sha256`",
                );
            }
            ("basic", kept) => self.basic.insert(name.into(), (kept, entry)).is_none(),
            ("api_key", kept) => self.api_keys.insert(name.into(), (kept, entry)).is_none(),
            _ => return Err("the first word is `bearer`, `basic`, `api_key` or `certificate`"),
        })
    }

    /// The value goes to the end of the line, or to the first of the options at its end: it may have blanks in it.
    fn enter_certificate(&mut self, line: &str) -> Result<(), &'static str> {
        let rest = line.strip_prefix("certificate").unwrap_or_default().trim_ascii_start();
        let mut subject = rest;
        while let Some((before, last)) = subject.rsplit_once([' ', '\t'])
            && is_option(last)
        {
            subject = before.trim_ascii_end();
        }
        let options = rest.get(subject.len()..).unwrap_or_default();
        let may = CredentialOptions::read(options.split_ascii_whitespace())?;
        let form =
            "a certificate is written `certificate CN=…`, `O=…`, `OU=…`, or `*` for every one that is signed";
        let entry = Arc::new(Credential { name: subject.into(), may });
        let (names, value) = match subject.split_once('=') {
            None if subject == "*" => {
                let twice = self.signed.replace(entry).is_some();
                return once(!twice);
            }
            Some(("CN", value)) => (&mut self.common_names, value),
            Some(("O", value)) => (&mut self.organizations, value),
            Some(("OU", value)) => (&mut self.organizational_units, value),
            _ => return Err(form),
        };
        if !(1..=NAME).contains(&value.len()) || value.chars().any(char::is_control) {
            return Err(form);
        }
        once(names.insert(value.into(), entry).is_none())
    }

    /// Takes over what was learnt of passwords that have not changed.
    pub(super) fn inherit(&mut self, old: &Credentials) {
        for (name, (kept, _)) in &mut self.basic {
            if let Some((before, _)) = old.basic.get(name) {
                kept.inherit(before);
            }
        }
    }

    pub(super) fn token(&self, token: &[u8]) -> (Option<&Arc<Credential>>, Match) {
        let digest = digest(token);
        match self.tokens.get(&key(&digest)) {
            Some((kept, entry)) if bool::from(kept.ct_eq(&digest)) => (Some(entry), Match::Right),
            _ => (None, Match::Wrong),
        }
    }

    /// Looks up a name and its password hash; an unknown name gets the hash parameters of an existing one.
    pub(super) fn basic(&self, name: &[u8], keyed: &ProcessKey) -> (Option<&Arc<Credential>>, Secret<'_>) {
        // Which one stands in is computed for known names, too, so that it takes as long.
        let drawn = key(&keyed.of(name)) % self.nobodies.len().max(1) as u64;
        let nobody = usize::try_from(drawn).ok().and_then(|at| self.nobodies.get(at));
        match (find(&self.basic, name), nobody) {
            (Some((StoredSecret::Password(password), entry)), _) => (Some(entry), Secret::Password(password)),
            (Some((StoredSecret::Digest(digest), entry)), _) => (Some(entry), Secret::Digest(digest)),
            (None, Some(Some(password))) => (None, Secret::Password(password)),
            (None, _) => (None, Secret::Digest(&[0; 32])),
        }
    }

    pub(super) fn api_key(&self, id: &[u8], secret: &[u8]) -> (Option<&Arc<Credential>>, Match) {
        match find(&self.api_keys, id) {
            Some((StoredSecret::Digest(kept), entry)) if bool::from(kept.ct_eq(&digest(secret))) => {
                (Some(entry), Match::Right)
            }
            Some(_) => (None, Match::Wrong),
            None => (None, nobody(secret)),
        }
    }

    /// The entry of a certificate: the most specific line counts.
    pub(super) fn certificate(&self, certificate: &Certificate) -> Option<&Arc<Credential>> {
        let units = certificate.organizational_units.iter();
        let organizations = certificate.organizations.iter();
        let common = certificate.common_name.as_deref().and_then(|name| self.common_names.get(name));
        common
            .or_else(|| units.filter_map(|unit| self.organizational_units.get(unit)).next())
            .or_else(|| organizations.filter_map(|name| self.organizations.get(name)).next())
            .or(self.signed.as_ref())
    }
}

/// The stored secret that a password is compared with.
pub(super) enum Secret<'a> {
    /// Its SHA-256.
    Digest(&'a [u8; 32]),
    /// Its slow hash.
    Password(&'a Arc<Password>),
}

impl Secret<'_> {
    /// Compares where that is fast.
    pub(super) fn fast(&self, presented: &[u8]) -> Option<Match> {
        match self {
            Secret::Digest(kept) if bool::from(kept.ct_eq(&digest(presented))) => Some(Match::Right),
            Secret::Digest(_) => Some(Match::Wrong),
            Secret::Password(_) => None,
        }
    }
}

/// A password of nobody; nothing where it is like a token.
type UnknownPassword = Option<Arc<Password>>;

/// For each of these, one of nobody that is kept alike.
fn nobodies<'a>(all: impl Iterator<Item = &'a StoredSecret>) -> Vec<UnknownPassword> {
    let mut rounds: Vec<Option<NonZeroU32>> = all
        .map(|kept| match kept {
            StoredSecret::Digest(_) => None,
            StoredSecret::Password(password) => Some(password.rounds()),
        })
        .collect();
    // The same ones for the same names, whenever the file is read.
    rounds.sort_unstable();
    let alike = rounds.chunk_by(|one, other| one == other);
    let nobodies = alike.flat_map(|alike| {
        let nobody = alike.first().copied().flatten().map(|rounds| Arc::new(Password::of_nobody(rounds)));
        std::iter::repeat_n(nobody, alike.len())
    });
    nobodies.collect()
}

fn once(once: bool) -> Result<(), &'static str> {
    if once { Ok(()) } else { Err("it is there twice: the same name of the same kind, or the same token") }
}

fn find<'a, T>(map: &'a HashMap<Box<str>, T>, name: &[u8]) -> Option<&'a T> {
    map.get(std::str::from_utf8(name).ok()?)
}

/// A name that is not known takes as long as one that is.
fn nobody(secret: &[u8]) -> Match {
    std::hint::black_box(digest(secret));
    Match::Wrong
}

fn key(digest: &[u8; 32]) -> u64 {
    digest.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

fn is_name(name: &str) -> bool {
    (1..=NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

/// Whether a word is an option, or is meant to be one.
fn is_option(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    })
}

impl CredentialOptions {
    /// Reads what follows a hash: options, each at most once.
    fn read<'a>(words: impl Iterator<Item = &'a str>) -> Result<CredentialOptions, &'static str> {
        let (mut tenant, mut bulk, mut indices) = (None, None, None);
        for word in words {
            let is_new = match word.split_once('=') {
                Some(("tenant", name)) => tenant.replace(TenantRule::read(name)?).is_none(),
                Some(("bulk", actions)) => bulk.replace(BulkActions::read(actions)?).is_none(),
                Some(("indices", patterns)) => indices.replace(Indices::read(patterns)?).is_none(),
                _ => false,
            };
            if !is_new {
                return Err(
                    "after the hash, only `tenant=…`, `bulk=…` and `indices=…` are allowed, each at most once",
                );
            }
        }
        let (tenant, bulk) = (tenant.unwrap_or_default(), bulk.unwrap_or_default());
        Ok(CredentialOptions { tenant, bulk, indices, operator: false })
    }
}

impl TenantRule {
    fn read(name: &str) -> Result<TenantRule, &'static str> {
        if name == "*" {
            return Ok(TenantRule::Any);
        }
        let named = crate::tenancy::validate_name(name).map(|name| TenantRule::Named(name.into()));
        named.map_err(|_| {
            "a tenant's name has 1 to 128 letters, digits and `-_.!*'():@+=~`, and begins with no dot; `*` stands for \
             every tenant, for proxies"
        })
    }
}
