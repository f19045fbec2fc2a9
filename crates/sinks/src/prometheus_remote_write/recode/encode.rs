//! From a piece to requests: translated, spread over lanes, compressed.

use super::piece::{self, Piece, Source};
use crate::prometheus_remote_write::exchange::Request;
use crate::room::{Held, NoRoom, Room};
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_wire::output::{Counter, SliceOutput};
use tidegate_wire::remote_write::{Request as View, Series, Symbols, Version, view};
use tidegate_wire::remote_write::{join, split, translate, v2};
use tidegate_wire::snappy;

/// Makes requests, within a sink's room.
pub(super) struct Encoder {
    room: Room,
    lanes: usize,
    snappy: snappy::Encoder,
}

/// A piece as it goes out.
pub(super) struct Encoded {
    /// One for each lane that has something.
    pub(super) requests: Vec<Request>,
    /// Items that the version which is sent cannot say.
    pub(super) untranslatable: u64,
}

/// Why a piece cannot become requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is larger than asked for.
    Large,
    /// There is no memory for it.
    Room(NoRoom),
    /// There never is memory for what all records that it is of need together, however small it is cut.
    Source,
}

impl From<NoRoom> for Unfit {
    fn from(no_room: NoRoom) -> Unfit {
        Unfit::Room(no_room)
    }
}

/// A body that was made, and the items of its source that it cannot say.
struct Made(Held<Window>, u64);

impl Encoder {
    pub(super) fn new(room: Room, lanes: usize) -> Encoder {
        Encoder { room, lanes, snappy: snappy::Encoder::new() }
    }

    /// The requests of `piece` in the version `to`, of at most `most` bytes each before compression.
    pub(super) async fn encode(
        &mut self,
        source: &Source,
        piece: &Piece,
        to: Version,
        most: usize,
    ) -> Result<Encoded, Unfit> {
        let made = match (source.version(), to) {
            (Version::V1, Version::V1) => None,
            (Version::V1, Version::V2) => Some(self.newer(source.bytes(piece), most).await?),
            (Version::V2, Version::V2) => Some(self.joined(source, piece, most).await?),
            (Version::V2, Version::V1) => {
                let Made(joined, _) = self.joined(source, piece, most).await?;
                Some(self.older(&joined, most).await?)
            }
        };
        let (whole, untranslatable) = match &made {
            Some(Made(window, untranslatable)) => (window.as_ref(), *untranslatable),
            None => (source.bytes(piece), 0),
        };
        if whole.len() > most {
            return Err(Unfit::Large);
        }
        if to == Version::V2 && !piece::has_series(whole) {
            return Ok(Encoded { requests: Vec::new(), untranslatable });
        }
        let requests = if self.lanes == 1 {
            let items = source.items(piece).saturating_sub(untranslatable);
            vec![self.request(whole, to, items).await?]
        } else {
            match to {
                Version::V1 => self.spread(whole).await?,
                Version::V2 => self.spread_v2(whole, most).await?,
            }
        };
        Ok(Encoded { requests, untranslatable })
    }

    /// The series of `piece` from all bodies, with one symbol table.
    async fn joined(&self, source: &Source, piece: &Piece, most: usize) -> Result<Made, Unfit> {
        let wanted = piece.series().ok_or(Unfit::Large)?;
        let (bodies, first) = source.bodies_of(&wanted);
        let most = most.min(roomy(source.len()));
        let mut out = self.room.window(most).await?;
        let keep = |position: u64, _: &v2::Series<'_>| wanted.contains(&(first + position));
        match self.join(&bodies, keep, most, &mut out).await {
            // What is to be held does not depend on how many of the series are wanted.
            Err(Unfit::Room(NoRoom::Never)) => Err(Unfit::Source),
            joined => joined.map(|_series| Made(out, 0)),
        }
    }

    /// The series of 2.0 bodies that `keep` wants. Says how many there are.
    async fn join(
        &self,
        bodies: &[&[u8]],
        keep: impl FnMut(u64, &v2::Series<'_>) -> bool,
        most: usize,
        out: &mut Window,
    ) -> Result<u64, Unfit> {
        let symbols = bodies.iter().map(|raw| Symbols::count(raw)).sum();
        let _charge = self.room.charge(join::Scratch::bytes_for(symbols)).await?;
        let mut scratch = join::Scratch::new(symbols);
        fill(out, most, |out| join::join_some(bodies, keep, &mut scratch, out)).map(|joined| joined.series)
    }

    /// A 1.0 body as 2.0.
    async fn newer(&self, raw: &[u8], most: usize) -> Result<Made, Unfit> {
        let (symbols, families) = piece::texts_of(raw);
        let _charge = self.room.charge(translate::Scratch::bytes_for(symbols, families)).await?;
        let mut scratch = translate::Scratch::new(symbols, families);
        let most = most.min(roomy(raw.len()));
        let mut out = self.room.window(most).await?;
        let dropped = fill(&mut out, most, |out| translate::to_v2(raw, &mut scratch, out))?;
        Ok(Made(out, dropped.exemplars + dropped.metadata))
    }

    /// A 2.0 body as 1.0. Start timestamps are lost; they are no items.
    async fn older(&self, raw: &[u8], most: usize) -> Result<Made, Unfit> {
        let mut out = self.room.window(most).await?;
        let _charge = self.room.charge(Symbols::bytes_for(raw)).await?;
        let mut symbols = Symbols::new();
        let Ok(View::V2(request)) = view(Version::V2, raw, &mut symbols) else { return Err(Unfit::Large) };
        fill(&mut out, most, |out| translate::to_v1(request, out))?;
        Ok(Made(out, 0))
    }

    /// A 1.0 body as one request for each lane that has something of it.
    async fn spread(&mut self, raw: &[u8]) -> Result<Vec<Request>, Unfit> {
        let mut sizes = vec![Counter::default(); self.lanes];
        split::partition(raw, &mut sizes).map_err(|_| Unfit::Large)?;
        let mut requests = Vec::with_capacity(self.lanes);
        let mut all = self.room.window(raw.len()).await?;
        let mut rest = all.spare_mut();
        let mut outputs = Vec::with_capacity(self.lanes);
        for size in &sizes {
            let size = usize::try_from(size.bytes()).map_err(|_| Unfit::Large)?;
            let (lane, behind) = std::mem::take(&mut rest).split_at_mut_checked(size).ok_or(Unfit::Large)?;
            outputs.push(SliceOutput::new(lane));
            rest = behind;
        }
        split::partition(raw, &mut outputs).map_err(|_| Unfit::Large)?;
        let lengths: Vec<usize> = outputs.iter().map(SliceOutput::len).collect();
        all.advance(lengths.iter().sum());
        let mut start = 0;
        for len in lengths {
            let lane = all.get(start..start + len).unwrap_or_default();
            start += len;
            if !lane.is_empty() {
                let items = piece::items_of(Version::V1, lane);
                requests.push(self.request(lane, Version::V1, items).await?);
            }
        }
        Ok(requests)
    }

    /// A 2.0 body as one request for each lane that has something of it. Each lane has a symbol table of its
    /// own; all of them together may be as large as one request.
    async fn spread_v2(&mut self, raw: &[u8], most: usize) -> Result<Vec<Request>, Unfit> {
        let mut requests = Vec::with_capacity(self.lanes);
        let mut left = most;
        for number in 0..self.lanes {
            let mut lane = self.room.window(raw.len()).await?;
            let lanes = self.lanes;
            let keep = |_, series: &v2::Series<'_>| split::lane(&Series::V2(*series), lanes) == number;
            let series = self.join(&[raw], keep, left, &mut lane).await?;
            if series > 0 {
                left = left.saturating_sub(lane.len());
                let items = piece::items_of(Version::V2, &lane);
                requests.push(self.request(&lane, Version::V2, items).await?);
            }
        }
        Ok(requests)
    }

    async fn request(&mut self, raw: &[u8], version: Version, items: u64) -> Result<Request, Unfit> {
        let longest = snappy::max_compressed_len(raw.len()).map_err(|_| Unfit::Large)?;
        let mut out = self.room.window(longest).await?;
        let len = self.snappy.compress(raw, out.spare_mut()).map_err(|_| Unfit::Large)?;
        out.advance(len);
        Ok(Request { body: Bytes::from_owner(out), version, items })
    }
}

/// Bytes that something made of `len` bytes usually stays within; what does not is cut smaller.
fn roomy(len: usize) -> usize {
    len.saturating_add(len / 2).saturating_add(256)
}

/// Runs `write` over the first `most` charged bytes of `out`.
fn fill<T, E>(
    out: &mut Window,
    most: usize,
    write: impl FnOnce(&mut SliceOutput<'_>) -> Result<T, E>,
) -> Result<T, Unfit> {
    let spare = out.spare_mut();
    let most = most.min(spare.len());
    let mut output = SliceOutput::new(spare.get_mut(..most).unwrap_or_default());
    let written = write(&mut output).map_err(|_| Unfit::Large)?;
    let len = output.len();
    out.advance(len);
    Ok(written)
}
