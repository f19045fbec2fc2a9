//! Where the fields of Vector's events are in our records.

use std::collections::BTreeSet;

use super::vrl::Segment;
use crate::import::ottl::literal;
use crate::import::references;

/// The kind of source that events come from, which decides what their fields mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// Lines of files.
    Lines,
    Kubernetes,
    Journald,
    Syslog,
    Otlp,
    /// Anything else.
    Plain,
    Metrics,
    /// Nothing is known of them.
    Traces,
}

/// The names of fields on a way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Vocabulary {
    pub(super) origin: Origin,
    /// Whether a program has replaced the event, so that its fields are what the program made.
    pub(super) is_replaced: bool,
    /// Whether the fields that a parser found were merged into the event: they are attributes, also where the source has a
    /// field of the same name.
    pub(super) is_merged: bool,
    /// Fields of resources that a program has set for each record.
    pub(super) moved: BTreeSet<String>,
}

/// Where a field is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    /// The path in OTTL.
    pub(super) path: String,
    /// The map that holds it, and its key there.
    pub(super) parent: Option<(String, Segment)>,
    /// Conditions that hold where everything is a map or a list that has to be one: without them the path cannot be read.
    pub(super) containers: Vec<String>,
    pub(super) kind: PlaceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceKind {
    /// All fields.
    Event,
    Body,
    Time,
    /// Of a resource, which other records share.
    Resource,
    Other,
}

impl Vocabulary {
    pub(super) fn new(origin: Origin) -> Vocabulary {
        Vocabulary { origin, is_replaced: false, is_merged: false, moved: BTreeSet::new() }
    }

    /// The map of the attributes of an item.
    pub(super) fn attributes(&self) -> &'static str {
        match self.origin {
            Origin::Metrics => "datapoint.attributes",
            Origin::Traces => "span.attributes",
            _ => "log.attributes",
        }
    }

    /// Where a field is, or why it is nowhere.
    pub(super) fn place(&self, path: &[Segment]) -> Result<Place, String> {
        refuse_negative_index(path)?;
        match self.origin {
            Origin::Traces => Err("the fields of Vector's traces have no counterpart".to_owned()),
            Origin::Metrics => metric(path),
            _ => self.log(path),
        }
    }

    fn log(&self, path: &[Segment]) -> Result<Place, String> {
        let event = whole("log.attributes", PlaceKind::Event);
        let Some((Segment::Field(first), rest)) = path.split_first() else { return Ok(event) };
        match first.as_str() {
            "message" => {
                let kind = if rest.is_empty() { PlaceKind::Body } else { PlaceKind::Other };
                return Ok(Place { kind, ..within("log.body", rest) });
            }
            "timestamp" if !self.is_replaced && rest.is_empty() => {
                return Ok(whole("log.time", PlaceKind::Time));
            }
            "source_type" if !self.is_replaced => return Err("records have no `source_type`".to_owned()),
            _ => {}
        }
        if !self.is_replaced && !self.moved.contains(&name_of(path)) {
            if let Some(attribute) = self.resource_attribute(first, rest)? {
                let key = Segment::Field(attribute.clone());
                return Ok(Place { kind: PlaceKind::Resource, ..within("resource.attributes", &[key]) });
            }
            if let Some(place) = self.own_field(first, rest) {
                return Ok(place);
            }
        }
        if let Some(attribute) = self.moved_to(path) {
            return Ok(within("log.attributes", &[Segment::Field(attribute)]));
        }
        Ok(within("log.attributes", path))
    }

    /// The key among the attributes of a field that a parser may have found, and that the source has elsewhere.
    pub(super) fn merged_key(&self, path: &[Segment]) -> Option<String> {
        let [Segment::Field(name)] = path else { return None };
        if !self.is_merged || self.is_replaced || self.moved.contains(name) || name == "message" {
            return None;
        }
        let place = self.place(path).ok()?;
        (place.path != within("log.attributes", path).path).then(|| name.clone())
    }

    /// The attribute of a record that has the value of a field that a program has moved there.
    fn moved_to(&self, path: &[Segment]) -> Option<String> {
        let (Segment::Field(first), rest) = path.split_first()? else { return None };
        let is_moved = !self.is_replaced && self.moved.contains(&name_of(path));
        is_moved.then(|| self.resource_attribute(first, rest).ok().flatten()).flatten()
    }

    /// The place for a value that differs between the records of a resource.
    pub(super) fn move_to_record(&mut self, path: &[Segment]) -> Option<Place> {
        self.moved.insert(name_of(path));
        self.place(path).ok()
    }

    /// The attribute of the resource that has a field.
    fn resource_attribute(&self, first: &str, rest: &[Segment]) -> Result<Option<String>, String> {
        let field = |index: usize| match rest.get(index) {
            Some(Segment::Field(name)) => Some(name.as_str()),
            _ => None,
        };
        Ok(match (self.origin, first) {
            (Origin::Kubernetes, "kubernetes") => return kubernetes(field(0), field(1)).map(Some),
            (Origin::Otlp, "resources" | "resource") => match rest {
                [Segment::Field(name)] => Some(name.clone()),
                _ => return Err("resources are attributes one by one here".to_owned()),
            },
            _ if !rest.is_empty() => None,
            (Origin::Otlp, _) => None,
            (Origin::Lines | Origin::Kubernetes, "file") => Some("log.file.path".to_owned()),
            (Origin::Syslog, "appname") => Some("service.name".to_owned()),
            (Origin::Syslog, "hostname") | (_, "host") => Some("host.name".to_owned()),
            _ => None,
        })
    }

    /// Fields of records with names of their own.
    fn own_field(&self, first: &str, rest: &[Segment]) -> Option<Place> {
        let path = match (self.origin, first) {
            (Origin::Otlp, "attributes") => return Some(within("log.attributes", rest)),
            (Origin::Otlp, "severity_text") => "log.severity_text",
            (Origin::Otlp, "severity_number") => "log.severity_number",
            (Origin::Otlp, "trace_id") => "log.trace_id.string",
            (Origin::Otlp, "span_id") => "log.span_id.string",
            (Origin::Kubernetes | Origin::Lines, "stream") => return attribute("log.iostream", rest),
            (Origin::Syslog, "procid") => return attribute("process.pid", rest),
            (Origin::Syslog, "msgid") => return attribute("syslog.msg.id", rest),
            (Origin::Syslog, "source_ip") => return attribute("network.peer.address", rest),
            (Origin::Journald, name) => return attribute(journald(name)?, rest),
            _ => return None,
        };
        rest.is_empty().then(|| whole(path, PlaceKind::Other))
    }
}

fn attribute(name: &str, rest: &[Segment]) -> Option<Place> {
    rest.is_empty().then(|| within("log.attributes", &[Segment::Field(name.to_owned())]))
}

/// The attributes of a pod.
fn kubernetes(field: Option<&str>, label: Option<&str>) -> Result<String, String> {
    let attribute = match (field.unwrap_or_default(), label) {
        ("pod_labels", Some(label)) => return Ok(format!("k8s.pod.label.{label}")),
        ("pod_name", _) => "k8s.pod.name",
        ("pod_namespace", _) => "k8s.namespace.name",
        ("pod_uid", _) => "k8s.pod.uid",
        ("pod_node_name", _) => "k8s.node.name",
        ("container_name", _) => "k8s.container.name",
        ("container_id", _) => "container.id",
        ("container_image", _) => "container.image.name",
        (other, _) => {
            return Err(format!("the source `kubernetes_logs` has no `kubernetes.{other}`"));
        }
    };
    Ok(attribute.to_owned())
}

fn journald(field: &str) -> Option<&'static str> {
    Some(match field {
        "PRIORITY" => "syslog.severity.code",
        "SYSLOG_FACILITY" => "syslog.facility.code",
        "SYSLOG_IDENTIFIER" => "syslog.identifier",
        "_PID" => "process.pid",
        "_UID" => "process.user.id",
        "_COMM" => "process.executable.name",
        "_EXE" => "process.executable.path",
        "_CMDLINE" => "process.command_line",
        "_SYSTEMD_UNIT" => "systemd.unit",
        "_SYSTEMD_SLICE" => "systemd.slice",
        "CONTAINER_NAME" => "container.name",
        _ => return None,
    })
}

fn metric(path: &[Segment]) -> Result<Place, String> {
    match path {
        [Segment::Field(name)] if name == "name" => Ok(whole("metric.name", PlaceKind::Other)),
        [Segment::Field(tags)] if tags == "tags" => Ok(whole("datapoint.attributes", PlaceKind::Other)),
        [Segment::Field(tags), rest @ ..] if tags == "tags" => Ok(within("datapoint.attributes", rest)),
        _ => Err("of metrics, only `.name` and `.tags` have counterparts".to_owned()),
    }
}

/// Refuses the path of a list's member that is counted from its end.
pub(super) fn refuse_negative_index(path: &[Segment]) -> Result<(), String> {
    match path.iter().any(|segment| matches!(segment, Segment::Index(..0))) {
        true => Err("members of lists cannot be counted from the end here".to_owned()),
        false => Ok(()),
    }
}

/// A path inside of a map.
pub(super) fn within(base: &str, path: &[Segment]) -> Place {
    let keyed = |path: &[Segment]| {
        let keys = path.iter().map(|segment| match segment {
            Segment::Field(name) => format!("[{}]", literal(&references::vector(name).0)),
            Segment::Index(index) => format!("[{index}]"),
        });
        keys.fold(base.to_owned(), |path, key| path + &key)
    };
    let parent = path.split_last().map(|(last, before)| (keyed(before), last.clone()));
    let containers = path.iter().enumerate().filter_map(|(depth, segment)| {
        let container = keyed(path.get(..depth).unwrap_or_default());
        let test = match segment {
            Segment::Field(_) => "IsMap",
            Segment::Index(_) => "IsList",
        };
        let is_always = depth == 0 && (base.ends_with(".attributes") || base == "log.cache");
        (!is_always).then(|| format!("{test}({container})"))
    });
    Place { path: keyed(path), parent, containers: containers.collect(), kind: PlaceKind::Other }
}

/// A path that is no member of a map.
pub(super) fn whole(path: &str, kind: PlaceKind) -> Place {
    Place { path: path.to_owned(), parent: None, containers: Vec::new(), kind }
}

/// The name of a field, to remember it.
fn name_of(path: &[Segment]) -> String {
    let names = path.iter().map(|segment| match segment {
        Segment::Field(name) => name.clone(),
        Segment::Index(index) => index.to_string(),
    });
    names.collect::<Vec<String>>().join(".")
}
