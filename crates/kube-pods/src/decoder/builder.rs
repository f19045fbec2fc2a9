//! Puts a pod together from its fields, in whatever order they come.

use super::node::Node;
use crate::exclusion::{Match, Source};
use crate::pod::{Container, Fields, Owner, Pod};
use crate::selector::Matched;
use tidegate_wire::time::parse_rfc3339;

/// The label by which a Deployment tells its ReplicaSets apart: the end of their names.
const TEMPLATE_HASH: &str = "pod-template-hash";
/// The annotation of a static pod's copy in the API: the name of its folder in place of the uid.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// A CronJob ends a Job's name with the minute it was due; pods come soon after it.
const CRON_JOB_DELAY_MINUTES: u64 = 7 * 24 * 60;

/// A pod in the making.
#[derive(Debug)]
pub(super) struct Builder<'f> {
    fields: &'f Fields,
    limit: usize,
    pod: Pod,
    version: String,
    template_hash: String,
    created_ns: u64,
    owner: Owner,
    owner_is_controller: bool,
    container: Container,
    has_id: bool,
    matched: Matched,
    /// Counts what there was no memory for, of all pods.
    pub(super) left_out: u64,
}

impl<'f> Builder<'f> {
    pub(super) fn new(fields: &'f Fields, limit: usize) -> Builder<'f> {
        Builder {
            fields,
            limit,
            pod: Pod::default(),
            version: String::new(),
            template_hash: String::new(),
            created_ns: 0,
            owner: Owner::default(),
            owner_is_controller: false,
            container: Container::default(),
            has_id: false,
            matched: Matched::default(),
            left_out: 0,
        }
    }

    /// Begins with another pod.
    pub(super) fn begin(&mut self) {
        *self = Builder { left_out: self.left_out, ..Builder::new(self.fields, self.limit) };
        self.pod.bytes = size_of::<Pod>();
    }

    /// The version of the pod.
    pub(super) fn take_version(&mut self) -> String {
        std::mem::take(&mut self.version)
    }

    /// Whether the value of a label or annotation is looked at.
    pub(super) fn wants(&self, node: Node, key: &str) -> bool {
        match node {
            Node::Label => {
                key == TEMPLATE_HASH
                    || self.fields.is_wanted_label(key)
                    || self.fields.exclusions.may_match(key)
                    || self.fields.selector.asks_for(key)
            }
            _ => key == MIRROR || self.fields.exclusions.may_match(key),
        }
    }

    /// A label or an annotation.
    pub(super) fn pair(&mut self, node: Node, key: &str, value: &str) {
        let source = if node == Node::Label { Source::Label } else { Source::Annotation };
        if let Some(found) = self.fields.exclusions.match_of(source, key, value)
            && self.charge(found.bytes())
        {
            self.pod.excluded.add(found);
        }
        match (source, key) {
            (Source::Annotation, MIRROR) => self.pod.log_uid = self.boxed(value),
            (Source::Label, _) => {
                self.fields.selector.label(&mut self.matched, key, value);
                if key == TEMPLATE_HASH {
                    value.clone_into(&mut self.template_hash);
                }
                if self.fields.is_wanted_label(key) && self.charge(key.len() + value.len() + 64) {
                    self.pod.labels.push((key.into(), value.into()));
                }
            }
            _ => {}
        }
    }

    /// Another text.
    pub(super) fn text(&mut self, node: Node, text: &str) {
        match node {
            Node::Name => self.pod.name = self.boxed(text),
            Node::Namespace => self.pod.namespace = self.boxed(text),
            Node::Uid => self.pod.uid = self.boxed_twice(text),
            Node::Host => self.pod.node = self.boxed(text),
            Node::Version => text.clone_into(&mut self.version),
            Node::Created => self.created_ns = parse_rfc3339(text.as_bytes()).unwrap_or_default(),
            Node::OwnerKind => self.owner.kind = self.boxed(text),
            Node::OwnerName => self.owner.name = self.boxed_twice(text),
            Node::OwnerUid => self.owner.uid = self.boxed(text),
            Node::ContainerName => self.container.name = text.into(),
            Node::Image => self.container.image = text.into(),
            Node::ContainerId => {
                self.container.id = bare_id(text).into();
                self.has_id = true;
            }
            Node::PreviousId => self.container.previous_id = bare_id(text).into(),
            _ => {}
        }
    }

    /// A number or a truth value.
    pub(super) fn scalar(&mut self, node: Node, scalar: &str) {
        match node {
            Node::RestartCount => self.container.restart_count = scalar.parse().unwrap_or_default(),
            Node::OwnerIsController => self.owner_is_controller = scalar == "true",
            _ => {}
        }
    }

    /// The end of a reference to an owner: a pod has one that controls it.
    pub(super) fn end_owner(&mut self) {
        let owner = std::mem::take(&mut self.owner);
        if std::mem::take(&mut self.owner_is_controller) && self.pod.owner.is_none() {
            self.pod.owner = Some(owner);
        }
    }

    /// The end of a container in the specification, or of its status: both say something of the same container.
    pub(super) fn end_container(&mut self) {
        let found = std::mem::take(&mut self.container);
        if found.name.is_empty() {
            return;
        }
        let has_status = std::mem::take(&mut self.has_id);
        let len = found.name.len() + found.image.len() + found.id.len() + found.previous_id.len();
        if !self.charge(len + size_of::<Container>() + 32) {
            return;
        }
        match self.pod.containers.iter_mut().find(|known| known.name == found.name) {
            None => self.pod.containers.push(found),
            Some(known) => {
                if has_status || !found.previous_id.is_empty() || found.restart_count > 0 {
                    known.id = found.id;
                    known.previous_id = found.previous_id;
                    known.restart_count = found.restart_count;
                }
                if !found.image.is_empty() {
                    known.image = found.image;
                }
            }
        }
    }

    /// The pod is complete.
    pub(super) fn end(&mut self) -> Box<Pod> {
        let mut pod = std::mem::take(&mut self.pod);
        if pod.log_uid.is_empty() {
            pod.log_uid.clone_from(&pod.uid);
        }
        if let Some(owner) = &mut pod.owner {
            owner.controller = controller(owner, &self.template_hash, self.created_ns);
        }
        if !self.fields.selector.selects(std::mem::take(&mut self.matched)) {
            pod.excluded.add(Match::Output { container: None, stream: None });
        }
        pod.labels.shrink_to_fit();
        pod.containers.shrink_to_fit();
        pod.excluded.shrink();
        Box::new(pod)
    }

    /// A name; nothing where there is no memory for it.
    fn boxed(&mut self, text: &str) -> Box<str> {
        if self.charge(text.len()) { text.into() } else { Box::default() }
    }

    /// A name of which there will be a copy: the uid in the path, the owner's owner.
    fn boxed_twice(&mut self, text: &str) -> Box<str> {
        if self.charge(2 * text.len()) { text.into() } else { Box::default() }
    }

    fn charge(&mut self, bytes: usize) -> bool {
        let fits = self.pod.bytes.saturating_add(bytes) <= self.limit;
        if fits {
            self.pod.bytes += bytes;
        } else {
            self.pod.is_cut = true;
            self.left_out += 1;
        }
        fits
    }
}

/// `containerd://0123…` without the runtime.
fn bare_id(text: &str) -> &str {
    text.split_once("://").map_or(text, |(_, id)| id)
}

/// The Deployment of a ReplicaSet, and the CronJob of a Job, from their names.
///
/// A Deployment names its ReplicaSets by itself and the template's hash, which pods have as a label; a CronJob names its
/// Jobs by itself and the minute they were due. So no further request is needed.
fn controller(owner: &Owner, template_hash: &str, created_ns: u64) -> Option<Box<str>> {
    let (name, end) = owner.name.rsplit_once('-').filter(|(name, _)| !name.is_empty())?;
    let is_controlled = match &*owner.kind {
        "ReplicaSet" => end == template_hash,
        "Job" => {
            let due = end.parse::<u64>().ok().filter(|_| end.bytes().all(|byte| byte.is_ascii_digit()))?;
            due.abs_diff(created_ns / 60_000_000_000) <= CRON_JOB_DELAY_MINUTES
        }
        _ => false,
    };
    is_controlled.then(|| name.into())
}
