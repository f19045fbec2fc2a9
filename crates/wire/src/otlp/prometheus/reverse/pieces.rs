//! A translation that goes on where the room for the last piece ended.

use super::histogram::{histogram_point, is_translatable};
use super::message_writer::{BoundedWriter, ENDING};
use super::{COUNTER, Kind, MOST_METADATA, One, OtlpTranslation, Target, number_point};
use crate::output::Full;
use crate::remote_write::{Metadata, Request, Series, SeriesIter};

/// The part of a piece that is for points in any case, however long what encloses them is.
const FOR_POINTS: usize = 8;

/// Where a translation is: series, and values of that series, which are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PiecePosition {
    series: u64,
    values: u64,
}

/// A request of remote write on its way to OTLP, a piece at a time. Clones go on by themselves.
#[derive(Debug, Clone)]
pub struct OtlpPieces<'a> {
    rest: SeriesIter<'a>,
    families: FamilyTable<'a>,
    /// The series that is begun.
    open: Option<OpenSeries<'a>>,
    position: PiecePosition,
}

/// A series, of which some values may be done.
#[derive(Debug, Clone, Copy)]
struct OpenSeries<'a> {
    series: Series<'a>,
    target: Target<'a>,
    name: &'a [u8],
    labels: usize,
    /// Its values that OTLP has a form for, by kind, in the order in which they are said.
    values: [(Kind, u64); 3],
    /// Those that it has none for.
    untranslatable: u64,
}

/// The families of a 1.0 request, up to a bound: searched for each series, so it is looked up once.
#[derive(Debug, Clone, Copy)]
struct FamilyTable<'a> {
    families: [Metadata<'a>; MOST_METADATA],
    count: usize,
}

impl<'a> FamilyTable<'a> {
    fn of(request: Request<'a>) -> Self {
        let mut known = Self { families: [Metadata::default(); MOST_METADATA], count: 0 };
        if let Request::V1(_) = request {
            for (place, family) in known.families.iter_mut().zip(request.metadata()) {
                *place = family;
                known.count += 1;
            }
        }
        known
    }

    fn about(&self, name: &[u8]) -> Option<Metadata<'a>> {
        self.families.iter().take(self.count).find(|metadata| metadata.family == name).copied()
    }
}

impl<'a> OpenSeries<'a> {
    fn new(series: Series<'a>) -> Self {
        let name = series.label(b"__name__").unwrap_or_default();
        let (mut explicit, mut exponential, mut unsayable) = (0, 0, 0);
        for histogram in series.histograms() {
            *match (is_translatable(&histogram), Kind::of(&histogram)) {
                (false, _) => &mut unsayable,
                (true, Kind::Histogram) => &mut explicit,
                (true, _) => &mut exponential,
            } += 1;
        }
        let mut samples = series.samples().count() as u64;
        if name.is_empty() {
            unsayable += samples + explicit + exponential;
            (samples, explicit, exponential) = (0, 0, 0);
        }
        let values = [(Kind::Gauge, samples), (Kind::Histogram, explicit), (Kind::Exponential, exponential)];
        let labels = series.labels().count();
        Self { series, target: Target::of(&series), name, labels, values, untranslatable: unsayable }
    }

    /// How many values OTLP has a form for.
    fn count(&self) -> u64 {
        self.values.iter().map(|(_, count)| count).sum()
    }

    /// The value with which exemplars go: the last of the first kind that there is.
    fn with_exemplars(&self) -> Option<u64> {
        let first = self.values.iter().find(|(_, count)| *count > 0)?;
        Some(first.1 - 1)
    }

    fn exemplars(&self) -> u64 {
        self.series.exemplars().count() as u64
    }
}

impl<'a> OtlpPieces<'a> {
    pub(super) fn new(request: Request<'a>) -> Self {
        Self {
            rest: request.series(),
            families: FamilyTable::of(request),
            open: None,
            position: PiecePosition::default(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn position(&self) -> PiecePosition {
        self.position
    }

    /// Whether everything is written, or passed over.
    pub fn is_done(&mut self) -> bool {
        self.begin();
        self.open.is_none()
    }

    /// Goes on to `place`, if that is ahead. What is before it is not counted.
    pub fn skip_to(&mut self, position: PiecePosition) {
        while self.position.series < position.series && self.begin().is_some() {
            self.end();
        }
        if self.position.series == position.series && self.begin().is_some() {
            self.position.values = self.position.values.max(position.values);
        }
    }

    /// Passes over the next value, for which there is no room anywhere: how many items that is, with the exemplars that
    /// would have gone with it. What it comes by on the way is counted in `done`.
    pub fn skip_value(&mut self, done: &mut OtlpTranslation) -> u64 {
        while let Some(begun) = self.begin() {
            if self.position.values >= begun.count() {
                self.finish(&begun, done);
                continue;
            }
            let with_it =
                if begun.with_exemplars() == Some(self.position.values) { begun.exemplars() } else { 0 };
            self.position.values += 1;
            if self.position.values == begun.count() {
                self.finish(&begun, done);
            }
            return 1 + with_it;
        }
        0
    }

    /// Writes as many points as there is room for in `most` bytes, or one that is longer, as a request of OTLP metrics, to
    /// the start of `space`. What OTLP has no form for is counted when it is passed; it may be that there is nothing
    /// else. With nothing left, nothing is written.
    ///
    /// # Errors
    /// [`Full`] when there is no room for the next point.
    pub fn write(&mut self, space: &mut [u8], most: usize) -> Result<OtlpTranslation, Full> {
        self.fill(BoundedWriter::new(space), most)
    }

    /// The same for all that there is: where there is no room for it, what was written is of no use.
    pub(super) fn write_whole(&mut self, space: &mut [u8]) -> Result<OtlpTranslation, Full> {
        let done = self.fill(BoundedWriter::whole(space), usize::MAX)?;
        if self.is_done() { Ok(done) } else { Err(Full) }
    }

    fn fill(&mut self, mut out: BoundedWriter<'_>, most: usize) -> Result<OtlpTranslation, Full> {
        let mut limit = Some(most);
        let mut done = OtlpTranslation::default();
        while !out.is_ended()
            && let Some(first) = self.begin()
        {
            let (before, before_points) = (out.len(), done.points);
            let target = first.target;
            let group = out.message(1, |out| {
                out.message(1, |out| target.write(out))?;
                out.message(2, |out| {
                    while !out.is_ended()
                        && let Some(begun) = self.begin().filter(|begun| begun.target == target)
                    {
                        self.series(&begun, out, &mut limit, &mut done);
                    }
                    Ok(())
                })
            });
            if done.points == before_points {
                out.back_to(before);
                if group.is_err() {
                    out.end();
                }
            } else {
                // Where room is kept free to end it, there is some.
                group?;
            }
        }
        done.bytes = out.len();
        let has_moved = done != OtlpTranslation::default();
        if has_moved || self.is_done() { Ok(done) } else { Err(Full) }
    }

    /// Writes what there is room for of the series that is begun.
    fn series(
        &mut self,
        begun: &OpenSeries<'a>,
        out: &mut BoundedWriter<'_>,
        limit: &mut Option<usize>,
        done: &mut OtlpTranslation,
    ) {
        let about = begun.series.metadata().or_else(|| self.families.about(begun.name)).unwrap_or_default();
        let OpenSeries { series, target, name, labels, .. } = begun;
        let one = One { series, target, name, labels: *labels, about };
        let mut from = 0;
        for (kind, count) in begun.values {
            let end = from + count;
            if !out.is_ended() && self.position.values < end {
                let kind = if kind == Kind::Gauge && about.kind == COUNTER { Kind::Sum } else { kind };
                self.points(&one, begun, (kind, from), (out, limit), done);
            }
            from = end;
        }
        if self.position.values == begun.count() {
            self.finish(begun, done);
        }
    }

    /// Writes a metric with as many points of one kind as there is room for. The first of them all has the number
    /// `first` among the series' values.
    fn points(
        &mut self,
        one: &One<'_, 'a>,
        begun: &OpenSeries<'a>,
        (kind, first): (Kind, u64),
        (out, limit): (&mut BoundedWriter<'_>, &mut Option<usize>),
        done: &mut OtlpTranslation,
    ) {
        let (before, with_exemplars) = (out.len(), begun.with_exemplars());
        let place = &mut self.position.values;
        let from = *place;
        let passed = usize::try_from(from - first).unwrap_or(usize::MAX);
        // Whether to go on after a point.
        let mut put = |out: &mut BoundedWriter<'_>,
                       point: &dyn Fn(&mut BoundedWriter<'_>) -> Result<(), Full>| {
            let before = out.len();
            let exemplars = with_exemplars == Some(*place);
            let written = out.message(1, |out| {
                point(out)?;
                one.rest(kind, exemplars, out)
            });
            if written.is_err() {
                out.back_to(before);
                out.end();
                return false;
            }
            *place += 1;
            // From the first point on: the enclosing messages may be as long as the whole piece.
            if let Some(most) = limit.take() {
                let least = before.saturating_add(most / FOR_POINTS);
                out.limit(most.saturating_sub(ENDING).max(least));
            }
            true
        };
        let series = &begun.series;
        let metric = one.metric(kind, out, |out| {
            match kind {
                Kind::Gauge | Kind::Sum => {
                    for sample in series.samples().skip(passed) {
                        if !put(out, &|out| number_point(&sample, out)) {
                            break;
                        }
                    }
                }
                Kind::Histogram | Kind::Exponential => {
                    let sayable =
                        series.histograms().filter(|it| Kind::of(it) == kind && is_translatable(it));
                    for histogram in sayable.skip(passed) {
                        if !put(out, &|out| histogram_point(&histogram, kind, out)) {
                            break;
                        }
                    }
                }
            }
            Ok(())
        });
        if metric.is_err() {
            self.position.values = from;
        }
        let written = self.position.values - from;
        if written == 0 {
            out.back_to(before);
            out.end();
            return;
        }
        done.points += written;
        if with_exemplars.is_some_and(|last| (from..from + written).contains(&last)) {
            done.exemplars += begun.exemplars();
        }
    }

    /// The series that is begun, which is the next one where there is none.
    fn begin(&mut self) -> Option<OpenSeries<'a>> {
        if self.open.is_none() {
            self.open = self.rest.next().map(OpenSeries::new);
        }
        self.open
    }

    /// Counts what OTLP has no form for of the series that is begun, and ends it.
    fn finish(&mut self, begun: &OpenSeries<'a>, done: &mut OtlpTranslation) {
        done.dropped += begun.untranslatable;
        if begun.with_exemplars().is_none() {
            done.dropped_exemplars += begun.exemplars();
        }
        self.end();
    }

    fn end(&mut self) {
        self.open = None;
        self.position = PiecePosition { series: self.position.series + 1, values: 0 };
    }
}
