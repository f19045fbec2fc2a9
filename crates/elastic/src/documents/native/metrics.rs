//! Points: what has the same time, unit and attributes in one document.

use super::super::Product;
use super::super::document_buffer::DocumentOutput;
use super::super::document_writer::{DocumentWriter, ScopeOrigin, StreamKind};
use super::super::group::PointGroup;
use crate::json;
use tidegate_wire::output::Full;
use xxhash_rust::xxh64::Xxh64;

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// The documents of a group of points of one scope, of which those before the place are written.
    pub(in super::super) fn native_points(
        &mut self,
        origin: &mut ScopeOrigin<'a>,
        group: &mut PointGroup<'a>,
    ) -> Result<(), Full> {
        group.sort();
        let (mut ordinal, mut leader) = (0, group.leader(0));
        while let Some(at) = leader {
            if ordinal >= self.place.part {
                self.metrics(origin, group, at)?;
            }
            group.finish(at);
            ordinal += 1;
            leader = group.leader(at);
        }
        Ok(())
    }

    fn metrics(
        &mut self,
        origin: &mut ScopeOrigin<'a>,
        group: &mut PointGroup<'a>,
        at: usize,
    ) -> Result<(), Full> {
        let Some((point, unit)) = group.shared(at) else { return Ok(()) };
        let own = self.own(origin, point.attributes());
        let (start, time) = point.times();
        self.opened(StreamKind::Metrics, time, own.wishes, |pen| match pen.settings.flavour {
            Product::Elasticsearch => pen.templates(group, at),
            Product::OpenSearch => Ok(()),
        })?;
        if start > 0 {
            self.out.put(br#","start_timestamp":"#)?;
            json::rfc3339(start, self.out)?;
        }
        self.text(r#","unit":"#, unit)?;
        self.attributes(&own)?;
        let (mut items, mut names) = (0, Xxh64::new(0));
        let mut below = std::mem::take(&mut group.below);
        for (_, member) in group.sharing(at) {
            let Some(point) = member.point() else { continue };
            self.out.put(if items == 0 { br#","metrics":{"# } else { b"," })?;
            items += 1;
            names.update(member.name);
            self.objects.key(member.name, self.out)?;
            self.objects.lost += point.unsaid();
            point.write(&mut below, self.out)?;
        }
        group.below = below;
        self.out.put(b"}")?;
        json::formatted(format_args!(r#","_metric_names_hash":"{:x}""#, names.digest()), self.out)?;
        self.origin(origin)?;
        self.end(items)
    }

    /// Which template each field of the document is of.
    fn templates(&mut self, group: &PointGroup<'a>, at: usize) -> Result<(), Full> {
        let mut comma = "";
        self.out.put(br#","dynamic_templates":{"#)?;
        for (_, member) in group.sharing(at) {
            let Some(point) = member.point() else { continue };
            self.out.put(comma.as_bytes())?;
            self.out.put(br#""metrics."#)?;
            self.objects.name(member.name, self.out)?;
            self.out.put(br#"":""#)?;
            self.out.put(point.template(member.of).as_bytes())?;
            self.out.put(b"\"")?;
            comma = ",";
        }
        self.out.put(b"}")
    }
}
