//! Keys that are not in memory: where other gateways write to the state, they may have just been given out there.
//!
//! A wrong key costs the database at most one lookup, and all wrong keys together [`LOOKUPS_PER_S`] a second.

use super::{Fleet, FleetError};
use crate::agent_id::AgentId;
use crate::api_key::KeyHash;
use crate::store::Table;
use crate::time;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Requests whose keys are being looked up, or that are being received until then.
const TURNS: usize = 32;
/// Lookups of a second.
const LOOKUPS_PER_S: u32 = 200;
/// Wrong keys that are remembered.
const REMEMBERED: usize = 4096;

/// The outcome of checking a key against memory.
pub(crate) enum Proof {
    /// It is right.
    Valid,
    /// It is wrong.
    Invalid,
    /// It is not in memory; it is [looked up](Fleet::look_up) when the request is there.
    Unknown(Box<Lookup>),
    /// It is not in memory, and too many are being looked up.
    Busy,
}

/// A key that is to be looked up.
#[derive(Debug)]
pub(crate) struct Lookup {
    subject: Subject,
    hash: KeyHash,
    /// Of the id and the key.
    fingerprint: u64,
    _turn: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum Subject {
    Agent(AgentId),
    Token(Box<str>),
}

/// The bounds of lookups.
pub(super) struct Lookups {
    turns: Arc<Semaphore>,
    /// The second, and its lookups.
    rate: Mutex<(u32, u32)>,
    /// Fingerprints of wrong keys. A wrong key cannot become right: keys are given out at random.
    wrong: Mutex<Box<[u64]>>,
    seed: u64,
}

impl Default for Lookups {
    fn default() -> Lookups {
        Lookups {
            turns: Arc::new(Semaphore::new(TURNS)),
            rate: Mutex::default(),
            wrong: Mutex::new(vec![0; REMEMBERED].into_boxed_slice()),
            seed: rand::random(),
        }
    }
}

impl Lookups {
    fn start(&self, subject: Subject, secret: &[u8]) -> Proof {
        let fingerprint = self.fingerprint(&subject, secret);
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.get(slot(fingerprint)) == Some(&fingerprint) {
            return Proof::Invalid;
        }
        drop(wrong);
        let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else { return Proof::Busy };
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let now = time::uptime_s();
        if rate.0 != now {
            *rate = (now, 0);
        }
        if rate.1 >= LOOKUPS_PER_S {
            return Proof::Busy;
        }
        rate.1 += 1;
        Proof::Unknown(Box::new(Lookup { subject, hash: KeyHash::of(secret), fingerprint, _turn: turn }))
    }

    fn remember_wrong(&self, fingerprint: u64) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = wrong.get_mut(slot(fingerprint)) {
            *slot = fingerprint;
        }
    }

    fn fingerprint(&self, subject: &Subject, secret: &[u8]) -> u64 {
        let of_id = match subject {
            Subject::Agent(id) => xxh3_64_with_seed(&id.to_bytes(), self.seed),
            Subject::Token(id) => xxh3_64_with_seed(id.as_bytes(), !self.seed),
        };
        // 0 is an empty slot.
        xxh3_64_with_seed(secret, of_id).max(1)
    }
}

fn slot(fingerprint: u64) -> usize {
    usize::try_from(fingerprint % REMEMBERED as u64).unwrap_or(0)
}

impl Fleet {
    /// Whether this is the key of this agent.
    pub(crate) fn prove_agent(&self, id: AgentId, secret: &[u8]) -> Proof {
        match self.is_key_of(id, secret) {
            true => Proof::Valid,
            false if self.store.is_shared() => self.lookups.start(Subject::Agent(id), secret),
            false => Proof::Invalid,
        }
    }

    /// Whether this is the secret of this token of enrolment.
    pub(crate) fn prove_token(&self, id: &str, secret: &[u8]) -> Proof {
        match self.is_enrollment_token(id, secret) {
            true => Proof::Valid,
            false if self.store.is_shared() => self.lookups.start(Subject::Token(id.into()), secret),
            false => Proof::Invalid,
        }
    }

    /// Looks a key up in the state; takes whose it is into memory.
    ///
    /// # Errors
    /// [`FleetError::Unauthorized`] when it is wrong; another when that is not known.
    pub(crate) async fn look_up(&self, lookup: Lookup) -> Result<(), FleetError> {
        let is_right = match &lookup.subject {
            Subject::Agent(id) => {
                self.find_agent(*id).await?;
                self.registry.with(*id, |agent| agent.key.is(&lookup.hash)).unwrap_or(false)
            }
            Subject::Token(id) => {
                self.find(Table::Tokens, id).await?;
                let found = {
                    let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
                    let token = tokens.get(&**id).filter(|token| token.key.is(&lookup.hash));
                    token.map(|token| token.policy_id.clone())
                };
                if let Some(policy) = &found {
                    self.find_policy(policy).await?;
                }
                found.is_some()
            }
        };
        match is_right {
            true => Ok(()),
            false => {
                self.lookups.remember_wrong(lookup.fingerprint);
                Err(FleetError::Unauthorized)
            }
        }
    }
}
