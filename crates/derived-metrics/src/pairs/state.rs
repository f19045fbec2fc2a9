//! The spans that wait, in the state of an aggregator.
//!
//! ```text
//! for each measure of pairs: spans u32, each from the oldest to the newest:
//!   trace id, span id of the client, created u64, latency f64, flags u8 (1 client, 2 failed, 4 cut),
//!   lengths: tenant u8, service u16, dimensions u16, peer u16; and their bytes
//! ```

use super::EdgeStore;
use super::half::{HALF_MAX, Half};
use super::store::EdgeId;
use crate::aggregator::Aggregator;
use crate::state::StateError;
use crate::state_stream::{StateReader, StateWriter};
use std::io::{self, Read, Write};

const CLIENT: u8 = 1;
const FAILED: u8 = 2;
const CUT: u8 = 4;

impl Aggregator {
    pub(crate) fn write_edges(&self, out: &mut StateWriter<'_, impl Write>) -> io::Result<()> {
        for store in self.edges.iter().flatten() {
            out.u32(store.len() as u32)?;
            store.by_age().try_for_each(|number| write_edge(store, number, out))?;
        }
        Ok(())
    }

    pub(crate) fn read_edges(&mut self, input: &mut StateReader<'_, impl Read>) -> Result<(), StateError> {
        for measure in 0..self.edges.len() {
            if self.has_pairs(measure) {
                let mut newest_ms = 0;
                for _ in 0..input.u32()? {
                    newest_ms = self.read_edge(measure, newest_ms, input)?;
                }
            }
        }
        Ok(())
    }

    /// Reads an edge that was created at `before_ms` or later. Returns when.
    fn read_edge(
        &mut self,
        measure: usize,
        before_ms: u64,
        input: &mut StateReader<'_, impl Read>,
    ) -> Result<u64, StateError> {
        let (trace_id, span_id) = (input.array()?, input.array()?);
        let (created_ms, latency) = (input.u64()?, f64::from_bits(input.u64()?));
        let [flags, tenant_len] = input.array()?;
        let lens = [tenant_len.into(), input.u16()?, input.u16()?, input.u16()?].map(usize::from);
        let mut bytes = [0; HALF_MAX];
        let bytes = bytes.get_mut(..lens.iter().sum()).ok_or(StateError::Damaged)?;
        input.fill(bytes)?;
        let mut rest = &*bytes;
        let [tenant, service, dimensions, peer] = lens.map(|len| {
            let (part, behind) = rest.split_at_checked(len).unwrap_or_default();
            rest = behind;
            part
        });
        let [is_client, has_failed, is_cut] = [CLIENT, FAILED, CUT].map(|flag| flags & flag != 0);
        let half = Half { is_client, has_failed, is_cut, latency, service, dimensions, peer };
        let settings = self.settings.measures.get(measure).and_then(|group| group.pairs.as_ref());
        let is_valid = settings.is_some_and(|settings| half.is_valid(settings));
        let store = self.edges.get_mut(measure).and_then(Option::as_mut).ok_or(StateError::Damaged)?;
        let id = EdgeId { tenant, trace_id, span_id };
        let is_known_flag = flags <= CLIENT | FAILED | CUT;
        if !is_valid || !is_known_flag || store.find(&id).is_some() {
            return Err(StateError::Damaged);
        }
        if !(before_ms..=self.clock_ms).contains(&created_ms) {
            return Err(StateError::Damaged);
        }
        if store.insert(&id, &half, created_ms) { Ok(created_ms) } else { Err(StateError::OtherSettings) }
    }
}

fn write_edge(store: &EdgeStore, number: u32, out: &mut StateWriter<'_, impl Write>) -> io::Result<()> {
    let Some(half) = store.half(number) else { return Ok(()) };
    out.put(&store.trace_id(number).unwrap_or_default())?;
    out.put(&store.span_id(number).unwrap_or_default())?;
    out.u64(store.created_ms(number).unwrap_or_default())?;
    out.u64(half.latency.to_bits())?;
    let flags = [(half.is_client, CLIENT), (half.has_failed, FAILED), (half.is_cut, CUT)];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag);
    let tenant = store.tenant(number);
    out.put(&[flags, tenant.len() as u8])?;
    let parts = [half.service, half.dimensions, half.peer];
    parts.into_iter().try_for_each(|part| out.put(&(part.len() as u16).to_le_bytes()))?;
    [tenant].into_iter().chain(parts).try_for_each(|part| out.put(part))
}
