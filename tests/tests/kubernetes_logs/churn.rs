//! Pods that come and go: each line with the names of its pod, and memory that does not grow.

use crate::node::{Node, pod};
use serde_json::{Value, json};
use std::collections::VecDeque;
use tidegate_tests::{KubernetesApi, SOON, until};

/// Pods that run at a time.
const RUNNING: usize = 100;
/// The most bytes that a gateway of this memory may have resident.
const MEMORY: u64 = 64 << 20;

fn name(number: usize) -> String {
    format!("job-{number:06}")
}

/// So many pods, a hundred at a time, each with some lines in a file that is deleted soon after the pod.
fn churn(pods: usize) {
    let more = json!({"keep_deleted": "5s", "rotate_wait": "1s", "metadata_timeout": "1m"});
    let mut node = Node::with(KubernetesApi::new(), "64MiB", &more);
    node.api.start();
    node.gateway.start();
    let mut running: VecDeque<Value> = VecDeque::new();
    let (mut printed, mut after_a_third) = (0, 0);
    for number in 0..pods {
        let mut pod = pod(&name(number));
        pod["metadata"]["annotations"] = json!({"note": "x".repeat(2000)});
        node.api.put(pod.clone());
        let lines = [0, 1, 2].map(|line| format!("{} {line}", name(number)));
        node.print(&pod, "app", &lines.each_ref().map(String::as_str));
        printed += lines.len();
        running.push_back(pod);
        if number % RUNNING == RUNNING - 1 {
            // The files of the pods that end now are read: deleting unread ones would be the test's own loss.
            until(SOON, "the lines to be read", || node.accepted() >= printed);
        }
        if running.len() > RUNNING {
            let ended = running.pop_front().unwrap();
            node.api.delete(ended["metadata"]["uid"].as_str().unwrap());
            node.delete_files(&ended);
        }
        if number == pods / 3 {
            after_a_third = node.gateway.hwm();
        }
    }
    node.wait_for(printed);
    let most = node.gateway.hwm();
    assert!(most < MEMORY, "{most} bytes were resident");
    assert!(most < after_a_third + (8 << 20), "{after_a_third} bytes were resident, and {most} later");
    assert!(node.metric("kubernetes_pods_not_kept_total") < 1.0);
    let lines = node.lines();
    assert_eq!(lines.len(), printed);
    for (at, line) in lines.iter().enumerate() {
        let name = name(at / 3);
        assert_eq!(line.body, format!("{name} {}", at % 3));
        assert_eq!((line.of("k8s.pod.name"), line.of("container.id")), (name.clone(), format!("id-{name}")));
    }
    node.gateway.books_close();
}

#[test]
fn three_thousand_pods_come_and_go() {
    churn(3_000);
}

#[test]
#[ignore = "takes minutes: `make test-real` runs it"]
fn thirty_thousand_pods_come_and_go() {
    churn(30_000);
}
