//! The parts of a pod's JSON that are looked at. Everything else is passed over.

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Skip,
    // A watch's event.
    WatchEvent,
    EventType,
    /// A pod; after `ERROR` a `Status`.
    Object,
    Code,
    Message,
    // A list.
    List,
    ListMetadata,
    ListVersion,
    Continue,
    Items,
    // A pod.
    Pod,
    Metadata,
    Name,
    Namespace,
    Uid,
    Version,
    Created,
    Labels,
    Label,
    Annotations,
    Annotation,
    Owners,
    Owner,
    OwnerKind,
    OwnerName,
    OwnerUid,
    OwnerIsController,
    Spec,
    /// The name of its node.
    Host,
    Containers,
    Container,
    Image,
    Status,
    Statuses,
    ContainerStatus,
    ContainerName,
    ContainerId,
    RestartCount,
    LastState,
    Terminated,
    PreviousId,
}

impl Node {
    /// The value of a response.
    pub(super) fn root(is_watch: bool) -> Node {
        if is_watch { Node::WatchEvent } else { Node::List }
    }

    /// Whether it is to be an object, or else an array, for a look into it; `None` for others.
    pub(super) fn is_object(self) -> Option<bool> {
        match self {
            Node::Items | Node::Owners | Node::Containers | Node::Statuses => Some(false),
            Node::WatchEvent
            | Node::Object
            | Node::List
            | Node::ListMetadata
            | Node::Pod
            | Node::Metadata
            | Node::Labels
            | Node::Annotations
            | Node::Owner
            | Node::Spec
            | Node::Container
            | Node::Status
            | Node::ContainerStatus
            | Node::LastState
            | Node::Terminated => Some(true),
            _ => None,
        }
    }

    /// The elements of an array.
    pub(super) fn element(self) -> Node {
        match self {
            Node::Items => Node::Pod,
            Node::Owners => Node::Owner,
            Node::Containers => Node::Container,
            Node::Statuses => Node::ContainerStatus,
            _ => Node::Skip,
        }
    }

    /// The field of an object.
    pub(super) fn field(self, key: &str) -> Node {
        match (self, key) {
            (Node::WatchEvent, "type") => Node::EventType,
            (Node::WatchEvent, "object") => Node::Object,
            (Node::List, "metadata") => Node::ListMetadata,
            (Node::List, "items") => Node::Items,
            (Node::ListMetadata, "resourceVersion") => Node::ListVersion,
            (Node::ListMetadata, "continue") => Node::Continue,
            (Node::Object, "code") => Node::Code,
            (Node::Object, "message") => Node::Message,
            (Node::Object | Node::Pod, "metadata") => Node::Metadata,
            (Node::Object | Node::Pod, "spec") => Node::Spec,
            (Node::Object | Node::Pod, "status") => Node::Status,
            (Node::Metadata, "name") => Node::Name,
            (Node::Metadata, "namespace") => Node::Namespace,
            (Node::Metadata, "uid") => Node::Uid,
            (Node::Metadata, "resourceVersion") => Node::Version,
            (Node::Metadata, "creationTimestamp") => Node::Created,
            (Node::Metadata, "labels") => Node::Labels,
            (Node::Metadata, "annotations") => Node::Annotations,
            (Node::Metadata, "ownerReferences") => Node::Owners,
            (Node::Labels, _) => Node::Label,
            (Node::Annotations, _) => Node::Annotation,
            (Node::Owner, "kind") => Node::OwnerKind,
            (Node::Owner, "name") => Node::OwnerName,
            (Node::Owner, "uid") => Node::OwnerUid,
            (Node::Owner, "controller") => Node::OwnerIsController,
            (Node::Spec, "nodeName") => Node::Host,
            (Node::Spec, "containers" | "initContainers" | "ephemeralContainers") => Node::Containers,
            (Node::Container, "name") | (Node::ContainerStatus, "name") => Node::ContainerName,
            (Node::Container, "image") => Node::Image,
            (Node::Status, "containerStatuses" | "initContainerStatuses" | "ephemeralContainerStatuses") => {
                Node::Statuses
            }
            (Node::ContainerStatus, "containerID") => Node::ContainerId,
            (Node::ContainerStatus, "restartCount") => Node::RestartCount,
            (Node::ContainerStatus, "lastState") => Node::LastState,
            (Node::LastState, "terminated") => Node::Terminated,
            (Node::Terminated, "containerID") => Node::PreviousId,
            _ => Node::Skip,
        }
    }
}
