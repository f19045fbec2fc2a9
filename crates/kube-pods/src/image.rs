//! Image references: name, tag and digest.
//!
//! Source: the grammar of `github.com/distribution/reference`.

/// The parts of a reference such as `registry:5000/team/app:1.2@sha256:…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    /// With the registry, without tag and digest.
    pub(crate) name: &'a str,
    /// `latest` where there is neither a tag nor a digest, as runtimes pull it.
    pub(crate) tag: Option<&'a str>,
}

impl<'a> Image<'a> {
    /// Takes a reference apart; `None` for an image's id, which has no name.
    pub(crate) fn parse(reference: &'a str) -> Option<Image<'a>> {
        let (named, digest) = match reference.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (reference, None),
        };
        if named.is_empty() || named.starts_with("sha256:") {
            return None;
        }
        // A colon before the last slash belongs to the registry's port.
        let last = named.rsplit('/').next()?;
        let (name, tag) = match last.split_once(':') {
            Some((_, tag)) => (named.strip_suffix(tag)?.strip_suffix(':')?, Some(tag)),
            None => (named, digest.is_none().then_some("latest")),
        };
        Some(Image { name, tag: tag.filter(|tag| !tag.is_empty()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_references_apart() {
        let parts = |reference| Image::parse(reference).map(|image| (image.name, image.tag));
        assert_eq!(parts("nginx"), Some(("nginx", Some("latest"))));
        assert_eq!(parts("nginx:1.27"), Some(("nginx", Some("1.27"))));
        assert_eq!(parts("registry:5000/team/app"), Some(("registry:5000/team/app", Some("latest"))));
        assert_eq!(
            parts("registry:5000/team/app:v2@sha256:ab"),
            Some(("registry:5000/team/app", Some("v2")))
        );
        assert_eq!(parts("ghcr.io/a/b@sha256:ab"), Some(("ghcr.io/a/b", None)));
        assert_eq!(parts("app:"), Some(("app", None)));
        assert_eq!(parts("sha256:0123"), None);
        assert_eq!(parts(""), None);
    }
}
