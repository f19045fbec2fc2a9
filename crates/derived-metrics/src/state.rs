//! The state of an aggregator, for a restart.
//!
//! ```text
//! magic, version u32, fingerprint u64, position u64,
//! clock u64, last flush: number u64, time u64, is one under way u32, its time u64,
//! resources u32, series u32,
//! each resource: attributes length u16, tenant length u8, is of overflow series u8, tenant, attributes
//! each series: resource u32, measure u16, key length u16, start u64, last seen u32, key, words of its measure, exemplar where there are any
//! the spans of pairs that wait: see `pairs/state.rs`
//! xxh64 of all before
//! ```

use crate::aggregator::Aggregator;
use crate::exemplar::Exemplar;
use crate::flush::Flush;
use crate::series::{Owner, SeriesMut};
use crate::settings::{Settings, TENANT_MAX};
use crate::state_stream::{StateReader, StateWriter};
use std::io::{self, Read, Write};
use tidegate_pipeline::MEASURE_KEY_MAX;

const MAGIC: [u8; 8] = *b"tgderive";
const VERSION: u32 = 1;

/// The reason why a state cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another version of the program wrote it.
    #[error("the state of derived metrics has version {0}, which this program does not read")]
    Version(u32),
    /// It was written with other measures, temporality or exemplars, or does not fit into a smaller table.
    #[error("the state of derived metrics was written with other settings")]
    OtherSettings,
    /// It is incomplete, or was changed.
    #[error("the state of derived metrics is damaged")]
    Damaged,
    /// The input failed.
    #[error("cannot read the state of derived metrics: {0}")]
    Read(#[from] io::Error),
}

impl Aggregator {
    /// Writes all series, spans that wait for others, and the flush under way. `position` is the place in the journal up to which they were counted.
    ///
    /// To be called between records: the resources of a record are not a part of the state, and neither are the [counts](Self::counts).
    ///
    /// # Errors
    /// Those of the output.
    pub fn write_state(&self, position: u64, out: &mut impl Write) -> io::Result<()> {
        let mut out = StateWriter::new(out);
        out.put(&MAGIC)?;
        out.u32(VERSION)?;
        out.u64(self.settings.fingerprint())?;
        out.u64(position)?;
        out.u64(self.clock_ms)?;
        out.u64(self.flushed.number)?;
        out.u64(self.flushed.at_ms)?;
        out.u32(self.flush.is_some().into())?;
        out.u64(self.flush.map_or(0, |flush| flush.at_ms))?;
        out.u32(self.resources.len() as u32)?;
        out.u32(self.series.len() as u32)?;
        for number in 0..self.resources.len() as u32 {
            let tenant = self.resources.tenant(number, &self.blob);
            let attributes = self.resources.attributes(number, &self.blob);
            out.put(&(attributes.len() as u16).to_le_bytes())?;
            out.put(&[tenant.len() as u8, self.resources.is_overflow(number).into()])?;
            out.put(tenant)?;
            out.put(attributes)?;
        }
        (0..self.series.len() as u32).try_for_each(|number| self.write_series(number, &mut out))?;
        self.write_edges(&mut out)?;
        out.finish()
    }

    fn write_series(&self, number: u32, out: &mut StateWriter<'_, impl Write>) -> io::Result<()> {
        let series = self.series.at(number);
        let key = series.key(&self.blob);
        out.u32(series.resource)?;
        out.put(&series.measure.to_le_bytes())?;
        out.put(&(key.len() as u16).to_le_bytes())?;
        out.u64(series.start_ms())?;
        out.u32(series.last_seen_s())?;
        out.put(key)?;
        let words = self.settings.measures.get(usize::from(series.measure)).map_or(0, |group| group.words());
        self.series.words(number).iter().take(words).try_for_each(|word| out.u64(*word))?;
        match self.series.exemplar(number) {
            Some(exemplar) => out.put(&exemplar.to_bytes()),
            None => Ok(()),
        }
    }

    /// Reads a state in small parts: a [`BufReader`](io::BufReader) saves calls. Returns the aggregator and the position that it was written
    /// with. A flush that was under way still is, with the same time and the same order of series.
    ///
    /// It takes the memory that the settings say, whatever is in the input.
    ///
    /// # Errors
    /// [`StateError`] where the input is not a state of these settings.
    pub fn read_state(settings: Settings, input: &mut impl Read) -> Result<(Aggregator, u64), StateError> {
        let mut input = StateReader::new(input);
        if input.array()? != MAGIC {
            return Err(StateError::Damaged);
        }
        let version = input.u32()?;
        if version != VERSION {
            return Err(StateError::Version(version));
        }
        if input.u64()? != settings.fingerprint() {
            return Err(StateError::OtherSettings);
        }
        let position = input.u64()?;
        let mut aggregator = Aggregator::new(settings);
        aggregator.clock_ms = input.u64()?;
        aggregator.flushed = Flush { number: input.u64()?, at_ms: input.u64()? };
        let (is_flushing, flush_at_ms) = (input.u32()? != 0, input.u64()?);
        let (resources, series) = (input.u32()?, input.u32()?);
        for number in 0..resources {
            aggregator.read_resource(number, &mut input)?;
        }
        for number in 0..series {
            aggregator.read_series(number, &mut input)?;
        }
        aggregator.read_edges(&mut input)?;
        input.finish()?;
        aggregator.has_news = aggregator.series() > 0;
        if is_flushing {
            let number = aggregator.flushed.number.saturating_add(1);
            aggregator.continue_flush(Flush { number, at_ms: flush_at_ms });
        }
        Ok((aggregator, position))
    }

    fn read_resource(
        &mut self,
        number: u32,
        input: &mut StateReader<'_, impl Read>,
    ) -> Result<(), StateError> {
        let attributes_len = usize::from(input.u16()?);
        let [tenant_len, is_overflow] = input.array()?;
        let mut bytes = [0; TENANT_MAX + MEASURE_KEY_MAX];
        let len = usize::from(tenant_len) + attributes_len;
        let resource = bytes.get_mut(..len).ok_or(StateError::Damaged)?;
        input.fill(resource)?;
        let (tenant, attributes) = resource.split_at(tenant_len.into());
        let added = self.resources.intern(tenant, attributes, is_overflow != 0, &mut self.blob);
        is_new(added, number)
    }

    fn read_series(&mut self, number: u32, input: &mut StateReader<'_, impl Read>) -> Result<(), StateError> {
        let (resource, measure, key_len) = (input.u32()?, input.u16()?, input.u16()?);
        let (start_ms, last_seen_s) = (input.u64()?, input.u32()?);
        let mut key = [0; MEASURE_KEY_MAX];
        let key = key.get_mut(..key_len.into()).ok_or(StateError::Damaged)?;
        input.fill(key)?;
        let group = self.settings.measures.get(usize::from(measure)).ok_or(StateError::Damaged)?;
        if resource as usize >= self.resources.len() {
            return Err(StateError::Damaged);
        }
        let owner = Owner { resource, measure, is_overflow: self.resources.is_overflow(resource) };
        is_new(self.series.intern(owner, key, start_ms, &mut self.blob), number)?;
        self.series.at_mut(number).see(last_seen_s);
        let SeriesMut { mut words, exemplar } = self.series.change(number);
        for instrument in &group.instruments {
            let (own, rest) =
                words.split_at_mut_checked(instrument.kind.words()).ok_or(StateError::Damaged)?;
            own.iter_mut().try_for_each(|word| input.u64().map(|read| *word = read))?;
            if !instrument.kind.is_valid(own) {
                return Err(StateError::Damaged);
            }
            words = rest;
        }
        if let Some(exemplar) = exemplar {
            *exemplar = Exemplar::from_bytes(&input.array()?);
        }
        Ok(())
    }
}

/// Where an entry was added, it has the next number. Where it was not, the table has no room for it, or already has it.
fn is_new(added: Option<u32>, number: u32) -> Result<(), StateError> {
    match added {
        None => Err(StateError::OtherSettings),
        Some(added) if added == number => Ok(()),
        Some(_) => Err(StateError::Damaged),
    }
}
