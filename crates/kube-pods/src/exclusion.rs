//! Labels and annotations by which people keep logs from being collected.
//!
//! | from | kind | key | value |
//! |---|---|---|---|
//! | tidegate | label or annotation | `tidegate.dev/exclude` | `true` |
//! | tidegate | annotation | `tidegate.dev/exclude-containers` | `a,b` |
//! | Vector | label | `vector.dev/exclude` | `true` |
//! | Vector | annotation | `vector.dev/exclude-containers` | `a,b` |
//! | Fluent Bit | annotation | `fluentbit.io/exclude[_stdout\|_stderr][-CONTAINER]` | `true` |
//!
//! Promtail and Grafana Alloy define none of their own: people write relabelling rules. For those there are
//! [`ExclusionRules::more`].
//!
//! Sources: Vector's `src/kubernetes/pod_manager_logic` and `sources/kubernetes_logs`; Fluent Bit's
//! `plugins/filter_kubernetes/kube_property.c`.

/// One of the two outputs of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// The logs of a container that nobody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exclusion {
    /// Its standard output.
    pub stdout: bool,
    /// Its standard error.
    pub stderr: bool,
}

impl Exclusion {
    /// Whether nothing of the container is wanted, so that its files need not be opened.
    #[must_use]
    pub fn is_all(self) -> bool {
        self.stdout && self.stderr
    }

    fn add(&mut self, stream: Option<Stream>) {
        self.stdout |= stream != Some(Stream::Stderr);
        self.stderr |= stream != Some(Stream::Stdout);
    }
}

/// Labels and annotations that exclude a pod, beside those that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExclusionRules {
    /// A key, and the value that it must have, or any.
    pub more: Vec<(String, Option<String>)>,
}

/// Where a pair of key and value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Label,
    Annotation,
}

/// The exclusion by one label or annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match<'a> {
    /// These containers, separated by commas; none where it is empty.
    Containers(&'a str),
    /// One container, or all of them; one output, or both.
    Output { container: Option<&'a str>, stream: Option<Stream> },
}

impl ExclusionRules {
    /// Whether a label or annotation with this key can exclude anything.
    pub(crate) fn may_match(&self, key: &str) -> bool {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        matches!(domain, "tidegate.dev" | "vector.dev" | "fluentbit.io")
            || self.more.iter().any(|(wanted, _)| wanted == key)
    }

    /// The exclusion by this label or annotation; `None` for all others.
    pub(crate) fn match_of<'a>(&self, source: Source, key: &'a str, value: &'a str) -> Option<Match<'a>> {
        const POD: Match<'_> = Match::Output { container: None, stream: None };
        let is_more = |(wanted, which): &(String, Option<String>)| {
            wanted == key && which.as_ref().is_none_or(|which| which == value)
        };
        if self.more.iter().any(is_more) {
            return Some(POD);
        }
        let (domain, name) = key.split_once('/')?;
        match (domain, name, source) {
            ("tidegate.dev", "exclude", _) | ("vector.dev", "exclude", Source::Label) => {
                (value == "true").then_some(POD)
            }
            ("tidegate.dev" | "vector.dev", "exclude-containers", Source::Annotation) => {
                Some(Match::Containers(value))
            }
            ("fluentbit.io", _, Source::Annotation) => {
                let rest = name.strip_prefix("exclude").filter(|_| is_true(value))?;
                let (stream, rest) = match rest.strip_prefix('_') {
                    None => (None, rest),
                    Some(rest) => match (rest.strip_prefix("stdout"), rest.strip_prefix("stderr")) {
                        (Some(rest), _) => (Some(Stream::Stdout), rest),
                        (_, Some(rest)) => (Some(Stream::Stderr), rest),
                        _ => return None,
                    },
                };
                let container = match rest.strip_prefix('-') {
                    Some(container) => Some(container).filter(|container| !container.is_empty()),
                    None if rest.is_empty() => None,
                    None => return None,
                };
                Some(Match::Output { container, stream })
            }
            _ => None,
        }
    }
}

/// The exclusions of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Excluded {
    all: Exclusion,
    containers: Vec<(Box<str>, Exclusion)>,
}

impl Match<'_> {
    /// The most bytes that it takes to remember it.
    pub(crate) fn bytes(self) -> usize {
        let (names, len) = match self {
            Match::Output { container, .. } => (1, container.map_or(0, str::len)),
            Match::Containers(names) => (1 + names.matches(',').count(), names.len()),
        };
        // A vector that grows holds twice what is in it.
        2 * names * size_of::<(Box<str>, Exclusion)>() + len
    }
}

impl Excluded {
    /// Adds what a label or annotation excludes.
    pub(crate) fn add(&mut self, found: Match<'_>) {
        match found {
            Match::Output { container: None, stream } => self.all.add(stream),
            Match::Output { container: Some(container), stream } => self.add_container(container, stream),
            Match::Containers(names) => {
                let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
                names.for_each(|name| self.add_container(name, None));
            }
        }
    }

    fn add_container(&mut self, name: &str, stream: Option<Stream>) {
        let known = self.containers.iter_mut().find(|(known, _)| **known == *name);
        if let Some((_, exclusion)) = known {
            return exclusion.add(stream);
        }
        let mut exclusion = Exclusion::default();
        exclusion.add(stream);
        self.containers.push((name.into(), exclusion));
    }

    /// The exclusions of this container.
    pub(crate) fn of(&self, container: &str) -> Exclusion {
        let own = self.containers.iter().find(|(name, _)| **name == *container);
        let own = own.map(|(_, exclusion)| *exclusion).unwrap_or_default();
        Exclusion { stdout: own.stdout || self.all.stdout, stderr: own.stderr || self.all.stderr }
    }

    pub(crate) fn shrink(&mut self) {
        self.containers.shrink_to_fit();
    }
}

/// As Fluent Bit reads a boolean.
fn is_true(value: &str) -> bool {
    ["true", "on", "yes", "1"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excluded(pairs: &[(Source, &str, &str)]) -> Excluded {
        let (rules, mut excluded) = (ExclusionRules::default(), Excluded::default());
        for (source, key, value) in pairs {
            if let Some(found) = rules.match_of(*source, key, value) {
                excluded.add(found);
            }
        }
        excluded
    }

    fn of(pair: (Source, &str, &str), container: &str) -> (bool, bool) {
        let exclusion = excluded(&[pair]).of(container);
        (exclusion.stdout, exclusion.stderr)
    }

    #[test]
    fn vectors_label_excludes_the_pod_and_its_annotation_containers() {
        assert_eq!(of((Source::Label, "vector.dev/exclude", "true"), "app"), (true, true));
        assert_eq!(of((Source::Label, "vector.dev/exclude", "false"), "app"), (false, false));
        assert_eq!(of((Source::Annotation, "vector.dev/exclude", "true"), "app"), (false, false));
        let annotation = (Source::Annotation, "vector.dev/exclude-containers", "app, proxy,");
        assert_eq!(of(annotation, "app"), (true, true));
        assert_eq!(of(annotation, "proxy"), (true, true));
        assert_eq!(of(annotation, "other"), (false, false));
    }

    #[test]
    fn fluent_bits_annotation_excludes_outputs_and_containers() {
        let of = |key, value, container| of((Source::Annotation, key, value), container);
        assert_eq!(of("fluentbit.io/exclude", "true", "app"), (true, true));
        assert_eq!(of("fluentbit.io/exclude", "True", "app"), (true, true));
        assert_eq!(of("fluentbit.io/exclude", "false", "app"), (false, false));
        assert_eq!(of("fluentbit.io/exclude_stderr", "true", "app"), (false, true));
        assert_eq!(of("fluentbit.io/exclude-app", "true", "app"), (true, true));
        assert_eq!(of("fluentbit.io/exclude-app", "true", "other"), (false, false));
        assert_eq!(of("fluentbit.io/exclude_stdout-app", "true", "app"), (true, false));
        for other in ["fluentbit.io/excluded", "fluentbit.io/exclude_both", "fluentbit.io/parser", "exclude"]
        {
            assert_eq!(of(other, "true", "app"), (false, false), "{other}");
        }
    }

    #[test]
    fn exclusions_add_up() {
        let found = excluded(&[
            (Source::Annotation, "fluentbit.io/exclude_stdout-app", "true"),
            (Source::Annotation, "fluentbit.io/exclude_stderr", "true"),
        ]);
        assert!(found.of("app").is_all());
        assert_eq!(found.of("other"), Exclusion { stdout: false, stderr: true });
    }

    #[test]
    fn ones_own_keys_exclude_too() {
        let rules = ExclusionRules {
            more: vec![("example.com/logs".into(), Some("off".into())), ("no-logs".into(), None)],
        };
        let is_pod = |key, value| rules.match_of(Source::Label, key, value).is_some();
        assert!(is_pod("example.com/logs", "off"));
        assert!(!is_pod("example.com/logs", "on"));
        assert!(is_pod("no-logs", ""));
        assert!(is_pod("tidegate.dev/exclude", "true"));
    }
}
