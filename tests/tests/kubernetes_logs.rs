//! The source `kubernetes_logs` with files as the kubelet and the container runtimes write them, and an API server that comes
//! late, forgets, refuses and goes away.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "kubernetes_logs/churn.rs"]
mod churn;
#[path = "kubernetes_logs/files.rs"]
mod files;
#[path = "kubernetes_logs/metadata.rs"]
mod metadata;
#[path = "kubernetes_logs/node.rs"]
mod node;
