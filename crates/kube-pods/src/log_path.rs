//! Paths of container logs, as the kubelet makes them.
//!
//! Source: `pkg/kubelet/kuberuntime/helpers.go` (`BuildContainerLogsDirectory`, `buildContainerLogsPath`) and
//! `pkg/kubelet/logs/container_log_manager.go` (rotation).

/// The parts of the path of a container's log.
///
/// `/var/log/pods/<namespace>_<pod>_<uid>/<container>/<restart count>.log`, and for rotated files a suffix such as
/// `.20240101-000000` or `.20240101-000000.gz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPath<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The pod's name.
    pub pod: &'a str,
    /// The pod's uid. For a static pod, the hash of its configuration, which the API's copy has as an annotation.
    pub uid: &'a str,
    /// The container's name.
    pub container: &'a str,
    /// How often the container had been restarted before it wrote this file.
    pub restart_count: u32,
    /// The state of the file.
    pub file: LogFile,
}

/// Whether a log is still written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFile {
    /// The container writes to it.
    Current,
    /// It was renamed at a rotation.
    Rotated,
    /// It was compressed after a rotation.
    Compressed,
    /// The kubelet is compressing it: its contents are not complete.
    Temporary,
}

impl<'a> LogPath<'a> {
    /// Takes a path apart; `None` if it is not that of a container's log. Only the last three names matter, so that the
    /// tree can be mounted anywhere.
    #[must_use]
    pub fn parse(path: &'a str) -> Option<LogPath<'a>> {
        let mut names = path.rsplitn(4, '/');
        let (file, container, pod) = (names.next()?, names.next()?, names.next()?);
        let mut parts = pod.split('_');
        let (namespace, pod, uid) = (parts.next()?, parts.next()?, parts.next()?);
        let is_whole = parts.next().is_none();
        let filled = [namespace, pod, uid, container].iter().all(|name| !name.is_empty());
        let (count, suffix) = file.split_once(".log")?;
        let restart_count = decimal(count)?;
        let file = LogFile::of_suffix(suffix)?;
        (is_whole && filled).then_some(LogPath { namespace, pod, uid, container, restart_count, file })
    }
}

impl LogFile {
    fn of_suffix(suffix: &str) -> Option<LogFile> {
        if suffix.is_empty() {
            return Some(LogFile::Current);
        }
        let suffix = suffix.strip_prefix('.')?;
        Some(match suffix.rsplit('.').next()? {
            "" => return None,
            "gz" => LogFile::Compressed,
            "tmp" => LogFile::Temporary,
            _ => LogFile::Rotated,
        })
    }
}

/// Digits only: `parse` alone would take a sign.
fn decimal(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn takes_apart_the_paths_of_the_kubelet() {
        let path = "/var/log/pods/kube-system_coredns-5d78c9869d-abcde_0b6e1f0c-1111-2222-3333-444455556666/coredns/3.log";
        let expected = LogPath {
            namespace: "kube-system",
            pod: "coredns-5d78c9869d-abcde",
            uid: "0b6e1f0c-1111-2222-3333-444455556666",
            container: "coredns",
            restart_count: 3,
            file: LogFile::Current,
        };
        assert_eq!(LogPath::parse(path), Some(expected));
    }

    /// A static pod's directory has a hash in place of the uid.
    #[test]
    fn takes_apart_the_path_of_a_static_pod() {
        let path = "/pods/kube-system_etcd-node1_d41d8cd98f00b204e9800998ecf8427e/etcd/0.log";
        assert_eq!(LogPath::parse(path).unwrap().uid, "d41d8cd98f00b204e9800998ecf8427e");
    }

    #[test]
    fn tells_rotated_files_apart() {
        let file = |name: &str| LogPath::parse(&format!("a_b_c/d/{name}")).map(|path| path.file);
        assert_eq!(file("0.log"), Some(LogFile::Current));
        assert_eq!(file("0.log.20240101-000000"), Some(LogFile::Rotated));
        assert_eq!(file("0.log.20240101-000000.gz"), Some(LogFile::Compressed));
        assert_eq!(file("0.log.20240101-000000.tmp"), Some(LogFile::Temporary));
        assert_eq!(file("0.log.20240101-000000.gz.tmp"), Some(LogFile::Temporary));
        for other in ["0.logs", "0.log.", "x.log", "+1.log", "0.txt", "-1.log", "99999999999.log", ".log"] {
            assert_eq!(file(other), None, "{other}");
        }
    }

    #[test]
    fn refuses_other_paths() {
        for other in ["", "/", "a/b", "a_b/c/0.log", "a_b_c_d/c/0.log", "__/c/0.log", "a_b_c//0.log"] {
            assert_eq!(LogPath::parse(other), None, "{other}");
        }
    }

    proptest! {
        /// Whatever the names are, they come out as they went in.
        #[test]
        fn names_come_back(
            namespace in "[a-z0-9-]{1,20}", pod in "[a-z0-9.-]{1,20}", uid in "[a-z0-9-]{1,36}",
            container in "[a-z0-9-]{1,20}", count in 0u32..10_000,
        ) {
            let path = format!("/var/log/pods/{namespace}_{pod}_{uid}/{container}/{count}.log");
            let found = LogPath::parse(&path).unwrap();
            prop_assert_eq!((found.namespace, found.pod, found.uid), (&*namespace, &*pod, &*uid));
            prop_assert_eq!((found.container, found.restart_count), (&*container, count));
        }
    }
}
