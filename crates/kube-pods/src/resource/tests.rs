use super::*;
use crate::pod::{Container, Owner};

fn written(path: &str, pod: Option<&Pod>) -> Vec<String> {
    let path = LogPath::parse(path).unwrap();
    let mut out = Vec::new();
    let put = |key: &str, value: Value<'_>| {
        out.push(match value {
            Value::Text(text) => format!("{key}={text}"),
            Value::Int(number) => format!("{key}={number}"),
            Value::TextList(text) => format!("{key}=[{text}]"),
        });
        Ok::<_, std::convert::Infallible>(())
    };
    let Ok(()) = attributes(&path, "node-1", pod, put);
    out
}

fn pod(kind: &str) -> Pod {
    Pod {
        uid: "api-uid".into(),
        log_uid: "u".into(),
        namespace: "shop".into(),
        name: "web-x".into(),
        node: "node-1".into(),
        labels: vec![("app".into(), "web".into())],
        owner: Some(Owner {
            kind: kind.into(),
            name: "web-5d".into(),
            uid: "77".into(),
            controller: Some("web".into()),
        }),
        containers: vec![Container {
            name: "web".into(),
            image: "shop/web:1.2".into(),
            restart_count: 1,
            id: "new".into(),
            previous_id: "old".into(),
        }],
        ..Pod::default()
    }
}

const FROM_PATH: [&str; 6] = [
    "k8s.namespace.name=shop",
    "k8s.pod.name=web-x",
    "k8s.pod.uid=u",
    "k8s.container.name=web",
    "k8s.container.restart_count=1",
    "k8s.node.name=node-1",
];

#[test]
fn the_path_alone_tells_names() {
    assert_eq!(written("/var/log/pods/shop_web-x_u/web/1.log", None), FROM_PATH);
}

#[test]
fn the_pod_adds_workload_container_and_labels() {
    let found = written("/var/log/pods/shop_web-x_u/web/1.log", Some(&pod("ReplicaSet")));
    let added = [
        "k8s.replicaset.name=web-5d",
        "k8s.replicaset.uid=77",
        "k8s.deployment.name=web",
        "container.id=new",
        "container.image.name=shop/web",
        "container.image.tags=[1.2]",
        "k8s.pod.label.app=web",
    ];
    assert_eq!(found[6..], added);
    assert_eq!(found[2], "k8s.pod.uid=api-uid");
}

#[test]
fn an_earlier_container_has_the_earlier_id() {
    let found = written("/var/log/pods/shop_web-x_u/web/0.log", Some(&pod("DaemonSet")));
    assert!(found.contains(&"container.id=old".to_owned()), "{found:?}");
    assert!(found.contains(&"k8s.daemonset.name=web-5d".to_owned()), "{found:?}");
}

#[test]
fn another_pod_says_nothing() {
    let other = Pod { namespace: "other".into(), ..pod("Job") };
    assert_eq!(written("/var/log/pods/shop_web-x_u/web/1.log", Some(&other)), FROM_PATH);
}
