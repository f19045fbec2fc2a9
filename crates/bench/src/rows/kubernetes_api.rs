//! An API server with the pods of a node, which never change.

use crate::Failure;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// The server. It serves until the end of the program.
pub(super) struct KubernetesApi {
    address: SocketAddr,
}

impl KubernetesApi {
    /// One with so many pods.
    pub(super) fn start(pods: usize) -> Result<KubernetesApi, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let pod = |number: usize| {
            json!({
                "metadata": {
                    "name": format!("web-5d78c9869d-{number}"), "namespace": "shop", "uid": format!("uid-{number}"),
                    "labels": {"app": "web", "pod-template-hash": "5d78c9869d"},
                    "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d78c9869d", "uid": "77", "controller": true}],
                },
                "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "shop/web:1.2"}]},
                "status": {"containerStatuses": [
                    {"name": "app", "restartCount": 0, "containerID": format!("containerd://{number:064}")},
                ]},
            })
        };
        let items: Vec<_> = (0..pods).map(pod).collect();
        let list: Arc<str> = json!({"metadata": {"resourceVersion": "1"}, "items": items}).to_string().into();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let list = Arc::clone(&list);
                // A client that goes away ends its thread.
                std::thread::spawn(move || serve(stream, &list).ok());
            }
        });
        Ok(KubernetesApi { address })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The folder of a pod's logs.
    pub(super) fn folder(pod: usize) -> String {
        format!("shop_web-5d78c9869d-{pod}_uid-{pod}")
    }
}

fn serve(stream: TcpStream, list: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let stream = reader.get_mut();
    if request.contains("watch=true") {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        // Nothing happens to any pod, until the client leaves.
        return reader.read_line(&mut line).map(|_| ());
    }
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{list}", list.len())
}
