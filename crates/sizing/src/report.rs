//! The answer in sentences.

use crate::figures::{RECORD_BYTES, SECONDS_IN_MEMORY};
use crate::sizing::{Catching, Losses, Part, Sizing};
use crate::{bytes, duration, items};
use std::fmt;

impl fmt::Display for Sizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load(f)?;
        if self.setup.in_memory_only {
            self.without_disk(f)?;
            self.memory(f)?;
            return self.processors(f);
        }
        self.disk(f)?;
        self.beyond(f)?;
        self.memory(f)?;
        self.catching_up(f)?;
        self.processors(f)
    }
}

impl Sizing {
    fn load(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "LOAD, while stores are out for {}", duration(self.outage_seconds))?;
        for part in &self.load.parts {
            let (rate, each) = (items(part.items_per_second), size(part.bytes_per_item));
            let word = part.kind.word();
            writeln!(f, "  {rate} {word} a second, each {each} in the journal: {}.", part.basis)?;
        }
        writeln!(
            f,
            "  Requests with few items take more: {RECORD_BYTES} bytes each come on top. Yours differ: --bytes-per-item says how \
             large they are, --measure takes it from a running gateway."
        )?;
        match self.setup.is_configured {
            true => Ok(()),
            false => writeln!(
                f,
                "  The gateway's configuration was not given (--config): what follows is from its status, with segments of {} as by \
                 default. What a status does not say is not known.",
                bytes(self.setup.segment as f64)
            ),
        }
    }

    /// A journal in memory acknowledges what every sink has delivered, so there is nothing to keep.
    fn without_disk(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nOUTAGE")?;
        writeln!(
            f,
            "  With `journal.durability: memory` a request is acknowledged when every sink has delivered it, and nothing is written to \
             disk. While a store is out, requests wait in memory, which has room for at most {} more of this load; then new ones are \
             refused with 429 or 503, and their clients keep them. Nothing that was acknowledged is lost, and nothing waits afterwards. \
             To bridge an outage, set `journal.durability: fsync`.",
            duration_in_memory(self.setup.memory.intake as f64 / self.journal_bytes_per_second)
        )
    }

    fn disk(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, backlog) = (bytes(self.journal_bytes_per_second), bytes(self.backlog_bytes));
        let setup = &self.setup;
        writeln!(f, "\nDISK")?;
        writeln!(
            f,
            "  The journal grows by {rate} a second, which is {backlog} in {}.",
            duration(self.outage_seconds)
        )?;
        let lasts = duration(self.quota_lasts_seconds);
        let quota = bytes(setup.quota as f64);
        if self.quota_lasts_seconds >= self.outage_seconds {
            writeln!(f, "  The present quota of {quota} is enough: it lasts {lasts}.")?;
        } else {
            writeln!(f, "  The present quota of {quota} is too small: it lasts {lasts}. Set:")?;
            writeln!(f, "    journal.quota: {}", config_bytes(self.quota_needed))?;
        }
        let needed = bytes(self.quota_needed as f64);
        let data = &setup.data;
        match (setup.free_disk, self.disk_has_room) {
            (Some(free), Some(true)) => {
                writeln!(
                    f,
                    "  The disk of {data} has {} free for the journal, which is enough.",
                    bytes(free as f64)
                )
            }
            (Some(free), _) => writeln!(
                f,
                "  The disk of {data} has only {} free for the journal, and {needed} are needed: use a larger one.",
                bytes(free as f64)
            ),
            (None, _) => {
                writeln!(f, "  How much is free on the disk of {data} is not known; {needed} are needed.")
            }
        }
    }

    fn beyond(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nBEYOND THE QUOTA")?;
        let Some(losses) = &self.setup.losses else {
            return writeln!(
                f,
                "  Not known: that depends on the sinks' `when_full`, which the configuration says (--config). With `block`, the \
                 default, new requests are refused and nothing is lost; with `drop_oldest` acknowledged data is."
            );
        };
        if !losses.journal.is_empty() {
            writeln!(
                f,
                "  While {} is what holds the journal up, the oldest records are dropped for it and counted (`when_full: \
                 drop_oldest`), {} for each second more: it loses what was acknowledged.",
                either(&losses.journal),
                bytes(self.journal_bytes_per_second)
            )?;
        }
        if !losses.handoff.is_empty() {
            writeln!(
                f,
                "  When the handoff quota of a member is used up, {} drops the oldest of that member's data and counts it \
                 (`handoff.when_full: drop_oldest`).",
                either(&losses.handoff)
            )?;
        }
        let blocks = "New requests are refused with 429 or 503 and the time to wait, so their clients keep them and send them again.";
        if losses == &Losses::default() {
            return writeln!(f, "  {blocks} Nothing that was acknowledged is lost.");
        }
        match self.setup.sinks > losses.journal.len() as u64 {
            true => writeln!(f, "  While another sink holds the journal up: {blocks}"),
            false => Ok(()),
        }
    }

    fn memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = &self.setup.memory;
        let budget = bytes(memory.budget as f64);
        let heading = match self.setup.in_memory_only {
            true => "MEMORY",
            false => "MEMORY, which an outage of any length leaves as it is",
        };
        writeln!(f, "\n{heading}")?;
        match (&memory.problem, self.setup.is_configured) {
            (None, true) => writeln!(f, "  The budget of {budget} takes this load.")?,
            (None, false) => writeln!(
                f,
                "  The budget of {budget} takes this rate. Whether it takes larger bodies or more connections, and what the smallest \
                 budget is, follows from the configuration (--config)."
            )?,
            (Some(problem), _) => {
                writeln!(f, "  The budget of {budget} does not take this load: {problem}.")?
            }
        }
        match memory.smallest {
            Some(smallest) => writeln!(
                f,
                "  The smallest budget that takes it is `memory: {}`, by planning with each.",
                config_bytes(smallest)
            )?,
            None if self.setup.is_configured => writeln!(
                f,
                "  No budget that was planned takes it: use smaller bodies or fewer connections."
            )?,
            None => {}
        }
        writeln!(f, "  {} connections may be open.", memory.connections)?;
        if !self.setup.in_memory_only {
            writeln!(
                f,
                "  A request is in memory until the disk has it, assumed {:.0} ms: {} at this rate, of at most {}.",
                SECONDS_IN_MEMORY * 1e3,
                bytes(self.intake_bytes),
                bytes(memory.intake as f64)
            )?;
        }
        for (setting, body) in &memory.largest_bodies {
            writeln!(f, "  The largest body for `{setting}` is {}.", bytes(*body as f64))?;
        }
        Ok(())
    }

    fn catching_up(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nCATCHING UP")?;
        match self.catching_up {
            Catching::Seconds(seconds) => writeln!(
                f,
                "  Afterwards each sink has sent what waited in {}, beside the load that goes on.",
                duration(seconds.ceil())
            )?,
            Catching::Never => {
                writeln!(f, "  It never catches up: the load alone is as much as a sink delivers.")?;
            }
        }
        for part in &self.load.parts {
            let Some(delivered) = part.delivered_per_second else { continue };
            let (rate, word) = (items(delivered), part.kind.word());
            writeln!(f, "  A sink delivers {rate} {word} a second: {}.", part.delivery_basis)?;
        }
        writeln!(f, "  Most stores take less: --delivery says how much yours takes.")
    }

    fn processors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nPROCESSORS")?;
        let sinks = match self.setup.sinks {
            1 => "1 sink".to_owned(),
            sinks => format!("{sinks} sinks"),
        };
        writeln!(f, "  The load with {sinks} takes {:.2} cores.", self.cores)?;
        let rows = |part: &Part| format!("{}: {}", part.kind.word(), part.kind.figures().rows);
        let rows: Vec<String> = self.load.parts.iter().map(rows).collect();
        writeln!(
            f,
            "  Measured on two shared cores (bench/results/latest.md; {}). Machines differ: `bench/run` measures yours. Catching up \
             takes what is left.",
            rows.join("; ")
        )
    }
}

/// A short time, with its tenths.
fn duration_in_memory(seconds: f64) -> String {
    if seconds < 60.0 { format!("{seconds:.1} s") } else { duration(seconds) }
}

/// One of these names.
fn either(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}

/// Bytes of one item.
fn size(value: f64) -> String {
    if value < 100.0 { format!("{value:.1} B") } else { bytes(value) }
}

/// Bytes as a configuration has them: `86GiB`.
fn config_bytes(bytes: u64) -> String {
    match bytes {
        gib if gib.is_multiple_of(1 << 30) => format!("{}GiB", gib >> 30),
        other => format!("{}MiB", other.div_ceil(1 << 20)),
    }
}
