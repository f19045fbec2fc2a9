//! Points: what has the same time and attributes in one document, each under its metric's name.

use super::super::Product;
use super::super::document_buffer::DocumentOutput;
use super::super::document_writer::{DocumentWriter, ScopeOrigin, StreamKind};
use super::super::fields::FieldValue;
use super::super::group::PointGroup;
use super::super::objects::is_field;
use super::ServiceInfo;
use tidegate_wire::output::Full;

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// The documents of a group of points of one scope, of which those before the place are written.
    pub(in super::super) fn ecs_points(
        &mut self,
        origin: &ScopeOrigin<'a>,
        service: ServiceInfo<'a>,
        group: &mut PointGroup<'a>,
    ) -> Result<(), Full> {
        group.sort();
        let (mut ordinal, mut leader) = (0, group.leader(0));
        while let Some(at) = leader {
            if ordinal >= self.place.part {
                self.ecs_metrics(origin, service, group, at)?;
            }
            group.finish(at);
            ordinal += 1;
            leader = group.leader(at);
        }
        Ok(())
    }

    fn ecs_metrics(
        &mut self,
        origin: &ScopeOrigin<'a>,
        service: ServiceInfo<'a>,
        group: &mut PointGroup<'a>,
        at: usize,
    ) -> Result<(), Full> {
        let Some((point, _)) = group.shared(at) else { return Ok(()) };
        let (_, time) = point.times();
        let time = self.ecs_time(time);
        self.fields.begin();
        let wishes = self.ecs_attributes(origin.wishes, point.attributes(), false);
        self.fields.text(b"processor.event", b"metric");
        self.fields.text(b"metricset.name", b"app");
        let mut items = 0;
        for (place, member) in group.sharing(at) {
            items += 1;
            self.objects.lost += member.point().map_or(0, |point| point.unsaid());
            self.fields.put(member.name, FieldValue::Other(u32::try_from(place).unwrap_or(u32::MAX)));
        }
        let mut below = std::mem::take(&mut group.below);
        let points = &*group;
        self.ecs_document(
            StreamKind::Metrics,
            "apm.app.",
            service,
            wishes,
            time,
            |pen| match pen.settings.flavour {
                Product::Elasticsearch => pen.ecs_templates(points, at),
                Product::OpenSearch => Ok(()),
            },
            |place, _, out| match points.at(place as usize) {
                Some((_, point)) => point.write(&mut below, out),
                None => out.put(b"null"),
            },
        )?;
        group.below = below;
        self.end(items)
    }

    /// Which template each field of the document is of, as Elastic APM's templates have them.
    fn ecs_templates(&mut self, group: &PointGroup<'a>, at: usize) -> Result<(), Full> {
        self.out.put(br#","dynamic_templates":{"#)?;
        let mut comma = "";
        for (_, member) in group.sharing(at) {
            let Some(point) = member.point() else { continue };
            self.out.put(comma.as_bytes())?;
            comma = ",";
            self.objects.key(member.name, self.out)?;
            self.out.put(match point.template(member.of) {
                "histogram" => b"\"histogram_metrics\"",
                "summary" => b"\"summary_metrics\"",
                _ => b"\"double_metrics\"",
            })?;
        }
        self.out.put(b"}")
    }
}

/// Whether a document can have a field of a metric's name beside those that it has anyway.
pub(in super::super) fn is_nameable(name: &[u8]) -> bool {
    let first = name.split(|byte| *byte == b'.').next().unwrap_or_default();
    let reserved =
        [&b"@timestamp"[..], b"data_stream", b"labels", b"numeric_labels", b"metricset", b"processor"];
    is_field(name) && !reserved.contains(&first) && !first.starts_with(b"_")
}
