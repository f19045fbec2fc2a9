//! The tenants that are told apart: a table of fixed size.

use crate::hash::HashKey;
use crate::limiter::{Limiter, LimiterSettings};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use tidegate_ledger::{Ledger, TenantHandle};

/// The name of the entry that all share who find no room in the table.
pub const OTHER: &str = "other";

/// The limits of each tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TenantLimits {
    /// Whoever has nothing of its own below.
    pub default: TenantAllowance,
    /// By name. These have an entry each from the start.
    pub overrides: BTreeMap<String, TenantAllowance>,
}

/// The limits of one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantAllowance {
    /// Its limits.
    pub limits: LimiterSettings,
    /// Its weight where memory is short: it may hold twice as much as another with half of its weight.
    pub weight: u32,
}

impl Default for TenantAllowance {
    fn default() -> TenantAllowance {
        TenantAllowance { limits: LimiterSettings::default(), weight: 1 }
    }
}

/// The number of an entry, from one; the first is that of the others. Two bytes, with none at all among them: it
/// lies in the task of every connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TenantId(NonZeroU16);

impl TenantId {
    /// The entry that is shared.
    pub const OTHER: TenantId = TenantId(NonZeroU16::MIN);

    fn of(entry: u32) -> TenantId {
        let number = u16::try_from(entry + 1).ok().and_then(NonZeroU16::new);
        number.map_or(TenantId::OTHER, TenantId)
    }

    fn entry(self) -> usize {
        usize::from(self.0.get()) - 1
    }
}

/// Names and their entries. A name that was seen once keeps its entry, and looking it up takes no lock; a name that
/// finds the table full shares the entry [`OTHER`], whoever else does. So inventing names fills the table, which is
/// all that it does.
pub struct Tenants {
    key: HashKey,
    /// Numbers of entries, or zero where there is none: the first is never looked up by name. At most half of them
    /// are taken.
    slots: Box<[AtomicU32]>,
    entries: Box<[OnceLock<TenantAccount>]>,
    /// Locked while an entry is added.
    adding: Mutex<TenantTable>,
    ledger: Ledger,
}

struct TenantTable {
    /// Entries that are taken.
    taken: u32,
    allowed: TenantLimits,
}

/// One entry: what a tenant may use, and uses.
#[derive(Debug)]
pub struct TenantAccount {
    page: TenantHandle,
    limiter: Limiter,
    weight: AtomicU32,
    /// Bytes of bodies that its requests hold, as they came.
    received: AtomicU64,
    /// Bytes in which such bodies are decompressed, or that are waited for.
    decoding: AtomicU64,
}

/// How much memory a tenant of weight 1 may hold for each byte that is free: so a single one can have four fifths
/// of all, two that both want everything four ninths each, and so on. What is left over is for whoever comes next.
const FAIR_SHARE_FACTOR: u64 = 4;

impl Tenants {
    /// A table of `most` names beside [`OTHER`], with pages in `ledger`.
    pub fn new(most: u16, allowed: TenantLimits, ledger: Ledger) -> Tenants {
        let most = usize::from(most.clamp(1, u16::MAX - 1));
        let slots = (0..slots(most)).map(|_| AtomicU32::new(0)).collect();
        let entries: Box<[_]> = (0..=most).map(|_| OnceLock::new()).collect();
        let names: Vec<String> = allowed.overrides.keys().cloned().collect();
        let adding = Mutex::new(TenantTable { taken: 0, allowed });
        let tenants = Tenants { key: HashKey::random(), slots, entries, adding, ledger };
        tenants.add(OTHER, None);
        names.iter().for_each(|name| _ = tenants.find(name));
        tenants
    }

    /// Its memory for `most` names, in bytes: a line of the memory plan.
    pub const fn bytes(most: u16) -> usize {
        let most = most as usize;
        let account = size_of::<OnceLock<TenantAccount>>() + Ledger::tenant_bytes();
        slots(most) * size_of::<AtomicU32>() + (most + 1) * account
    }

    /// The entry of this name, which is made if there is room for it.
    pub fn find(&self, name: &str) -> TenantId {
        let hash = self.key.hash(name.as_bytes());
        match self.look(hash, name) {
            Ok(found) => found,
            Err(_) if name == OTHER || self.is_full() => TenantId::OTHER,
            Err(_) => self.add(name, Some(hash)),
        }
    }

    /// Its account.
    pub fn account(&self, id: TenantId) -> Option<&TenantAccount> {
        self.entries.get(id.entry()).and_then(OnceLock::get)
    }

    /// The page under which a request of `name` is entered: the one of its entry, with its own name.
    pub fn ledger(&self, id: TenantId, name: &str) -> Option<TenantHandle> {
        let account = self.account(id)?;
        Some(if account.page.name() == name { account.page.clone() } else { account.page.called(name) })
    }

    /// All accounts, the one of the others first.
    pub fn accounts(&self) -> impl Iterator<Item = &TenantAccount> {
        self.entries.iter().map_while(OnceLock::get)
    }

    /// How many names can have an entry of their own.
    pub fn most(&self) -> usize {
        self.entries.len() - 1
    }

    /// Whether every new name shares [`OTHER`].
    pub fn is_full(&self) -> bool {
        self.entries.last().is_some_and(|last| last.get().is_some())
    }

    /// Everybody may use so much from now on; what is in use stays in use.
    pub fn set_limits(&self, allowed: TenantLimits) {
        let names: Vec<String> = allowed.overrides.keys().cloned().collect();
        {
            let mut adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
            for account in self.accounts() {
                account.change(&allowed.of(account.page.title()));
            }
            adding.allowed = allowed;
        }
        names.iter().for_each(|name| _ = self.find(name));
    }

    /// Looks a name up; the error is the slot where it would be entered.
    fn look(&self, hash: u64, name: &str) -> Result<TenantId, usize> {
        let mut at = hash as usize & (self.slots.len() - 1);
        loop {
            let number = self.slots.get(at).map_or(0, |slot| slot.load(Ordering::Acquire));
            if number == 0 {
                return Err(at);
            }
            let id = TenantId::of(number);
            if self.account(id).is_some_and(|account| account.page.title() == name) {
                return Ok(id);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn add(&self, name: &str, hash: Option<u64>) -> TenantId {
        let mut adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have added it meanwhile.
        let slot = match hash.map(|hash| self.look(hash, name)) {
            Some(Ok(found)) => return found,
            Some(Err(slot)) => Some(slot),
            None => None,
        };
        let number = adding.taken;
        let (Some(entry), Ok(page)) = (self.entries.get(number as usize), self.ledger.tenant(name)) else {
            return TenantId::OTHER;
        };
        let account = TenantAccount::new(page, &adding.allowed.of(name));
        // Only the holder of the lock fills entries, and each once: this one is empty.
        let _filled = entry.set(account);
        adding.taken += 1;
        if let Some(slot) = slot.and_then(|slot| self.slots.get(slot)) {
            slot.store(number, Ordering::Release);
        }
        TenantId::of(number)
    }
}

impl TenantAccount {
    fn new(page: TenantHandle, allowance: &TenantAllowance) -> TenantAccount {
        let limiter = Limiter::new(&allowance.limits);
        limiter.skip_items(page.items());
        let weight = AtomicU32::new(allowance.weight);
        TenantAccount { page, limiter, weight, received: AtomicU64::new(0), decoding: AtomicU64::new(0) }
    }

    fn change(&self, allowance: &TenantAllowance) {
        // Those that were accepted while nothing was limited are not owed.
        if !self.limiter.limits_items() {
            self.limiter.skip_items(self.page.items());
        }
        self.limiter.set_limits(&allowance.limits);
        self.weight.store(allowance.weight, Ordering::Relaxed);
    }

    /// Its page in the books.
    pub fn page(&self) -> &TenantHandle {
        &self.page
    }

    /// Its limits.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Bytes of memory that its requests hold: bodies as they came, and what they are decompressed in.
    pub fn held(&self) -> u64 {
        self.received.load(Ordering::Relaxed).saturating_add(self.decoding())
    }

    /// Those of them in which bodies are decompressed, or that are waited for.
    pub fn decoding(&self) -> u64 {
        self.decoding.load(Ordering::Relaxed)
    }

    /// Its weight.
    pub fn weight(&self) -> u32 {
        self.weight.load(Ordering::Relaxed)
    }

    /// The most that it may hold while so many bytes are free.
    pub fn fair_share(&self, free: u64) -> u64 {
        free.saturating_mul(FAIR_SHARE_FACTOR).saturating_mul(self.weight().into())
    }

    /// Whether it may hold `bytes` more, of which so many are free: if it holds none, or what it would hold then
    /// is within its part of what would be free then.
    pub(crate) fn may_hold(&self, bytes: u64, free: u64) -> bool {
        let held = self.held();
        held == 0 || held.saturating_add(bytes) <= self.fair_share(free.saturating_sub(bytes))
    }

    /// Enters that it holds `bytes` more, if it [may](Self::may_hold): for a request that has `own` of them already,
    /// beside which it may hold none.
    pub(crate) fn hold(&self, own: u64, bytes: u64, free: u64) -> bool {
        // Decompressed bytes count too, except for a tenant without other requests.
        let part = self.fair_share(free.saturating_sub(bytes)).saturating_sub(self.decoding());
        take(&self.received, own, bytes, part).is_some()
    }

    pub(crate) fn release(&self, bytes: u64) {
        self.received.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Enters that `bytes` more are to be had for a body to be decompressed in, which has `own` of them already: if
    /// there are no others, or all of them are within its part. Says how much there was before.
    pub(crate) fn decode(&self, own: u64, bytes: u64, free: u64) -> Option<u64> {
        take(&self.decoding, own, bytes, self.fair_share(free.saturating_sub(bytes)))
    }

    /// One that had `before` of them has `after` now.
    pub(crate) fn settle(&self, before: u64, after: u64) {
        if after >= before {
            self.decoding.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.decoding.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

/// Adds `bytes` to `count`, if there is nothing but `own` in it, or it does not exceed `part` then. Says what was in it.
fn take(count: &AtomicU64, own: u64, bytes: u64, part: u64) -> Option<u64> {
    let mut before = count.load(Ordering::Relaxed);
    while before <= own || before.saturating_add(bytes) <= part {
        let after = before.saturating_add(bytes);
        match count.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(before),
            Err(changed) => before = changed,
        }
    }
    None
}

impl TenantLimits {
    fn of(&self, name: &str) -> TenantAllowance {
        self.overrides.get(name).copied().unwrap_or(self.default)
    }
}

impl fmt::Debug for Tenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tenants: {} of {}", self.accounts().count(), self.entries.len())
    }
}

const fn slots(most: usize) -> usize {
    (2 * most).next_power_of_two()
}
