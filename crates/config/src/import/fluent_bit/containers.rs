//! Conditions on the paths of containers' files.

use super::record;
use crate::import::ottl::literal;

/// The folder with a link for each container: `POD_NAMESPACE_CONTAINER-ID.log`.
pub(super) const FOLDER: &str = "/var/log/containers/";

/// The condition that the name of a container's link in [`FOLDER`] matches a wildcard pattern. No part of the name has an
/// underscore, so most patterns are about single parts.
pub(super) fn condition(glob: &str) -> String {
    let parts: Vec<&str> = glob.split('_').collect();
    let mut conditions = match parts.as_slice() {
        [pod, namespace, container] => {
            let mut conditions = vec![part("k8s.pod.name", pod), part("k8s.namespace.name", namespace)];
            conditions.push(match *container {
                "*" | "*.log" | "*-*" | "*-*.log" => None,
                name => match name.strip_suffix("-*.log").or_else(|| name.strip_suffix("-*")) {
                    Some(name) => part("k8s.container.name", name),
                    None => Some(whole(&["k8s.container.name", "-", "container.id", ".log"], name)),
                },
            });
            conditions.into_iter().flatten().collect()
        }
        // What stands before the first star is the beginning of the pod's name.
        [start] if start.strip_suffix('*').is_some_and(|start| !start.contains('*')) => {
            part("k8s.pod.name", start).into_iter().collect()
        }
        _ => Vec::new(),
    };
    if conditions.is_empty() {
        let path = [
            "k8s.pod.name",
            "_",
            "k8s.namespace.name",
            "_",
            "k8s.container.name",
            "-",
            "container.id",
            ".log",
        ];
        conditions.push(whole(&path, glob));
    }
    conditions.join(" and ")
}

/// The condition that the tag of a container's records, which begins with `prefix`, matches a regular expression.
pub(super) fn tag_matches(prefix: &str, regex: &str) -> String {
    let attribute = |name: &str| format!("resource.attributes[{}]", literal(name));
    let parts = [
        literal(&format!("{prefix}var.log.containers.")),
        attribute("k8s.pod.name"),
        literal("_"),
        attribute("k8s.namespace.name"),
        literal("_"),
        attribute("k8s.container.name"),
        literal("-"),
        attribute("container.id"),
        literal(".log"),
    ];
    format!("IsMatch(Concat([{}], \"\"), {})", parts.join(", "), literal(regex))
}

/// The condition that an attribute matches a pattern; none if every one does.
fn part(attribute: &str, glob: &str) -> Option<String> {
    let path = format!("resource.attributes[{}]", literal(attribute));
    match glob {
        "*" => None,
        glob if !glob.contains('*') => Some(format!("{path} == {}", literal(glob))),
        glob => match glob.strip_suffix('*').filter(|start| !start.contains('*')) {
            Some(start) => {
                Some(format!("IsMatch({path}, {})", literal(&format!("^{}", record::escaped(start)))))
            }
            None => Some(format!("IsMatch({path}, {})", literal(&record::glob(glob)))),
        },
    }
}

/// The condition that several attributes, with texts between, match a pattern.
fn whole(parts: &[&str], glob: &str) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(|part| {
            let is_attribute = part.contains('.') && *part != ".log";
            if is_attribute { format!("resource.attributes[{}]", literal(part)) } else { literal(part) }
        })
        .collect();
    format!("IsMatch(Concat([{}], \"\"), {})", parts.join(", "), literal(&record::glob(glob)))
}

#[cfg(test)]
mod tests {
    use super::condition;

    #[test]
    fn patterns_are_about_parts_of_the_name() {
        let pod = r#"resource.attributes["k8s.pod.name"]"#;
        let namespace = r#"resource.attributes["k8s.namespace.name"]"#;
        assert_eq!(condition("shop*"), format!(r#"IsMatch({pod}, "^shop")"#));
        assert_eq!(condition("*_kube-system_*.log"), format!(r#"{namespace} == "kube-system""#));
        assert_eq!(
            condition("a*_prod*_*"),
            format!(r#"IsMatch({pod}, "^a") and IsMatch({namespace}, "^prod")"#)
        );
        let container = r#"resource.attributes["k8s.container.name"] == "app""#;
        assert_eq!(condition("*_*_app-*.log"), container);
        assert!(condition("*shop*").contains("Concat"), "{}", condition("*shop*"));
    }
}
