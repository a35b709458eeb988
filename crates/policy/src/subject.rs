//! A resource in the form that patterns are compared with.

use portcullis_contract::{NamedKind, Resource, ResourceKind};

use crate::host;

/// What is touched. Anything that is not in its canonical form counts as [`Subject::Opaque`]: it
/// cannot be told what it names, so that no pattern may vouch for it (tool-contract 13.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Absolute, without trailing slash; the root is the empty text.
    Path(String),
    /// At least one word.
    Argv(Vec<String>),
    /// Of a `host` and of a `url` resource.
    Host(String),
    Named(NamedKind, String),
    Secret,
    Opaque,
}

impl Subject {
    pub(crate) fn of(resource: &Resource) -> Self {
        let text = resource.canonical.as_str();
        let known = match resource.kind {
            ResourceKind::Path => canonical_path(text).map(Self::Path),
            ResourceKind::Argv => {
                serde_json::from_str::<Vec<String>>(text).ok().filter(|words| !words.is_empty()).map(Self::Argv)
            }
            ResourceKind::Host => host::canonical_host(text).map(Self::Host),
            ResourceKind::Url => host::host_of_url(text).map(Self::Host),
            ResourceKind::Named(kind) => Some(Self::Named(kind, text.to_owned())),
            ResourceKind::Secret => Some(Self::Secret),
            ResourceKind::Opaque => None,
        };
        known.unwrap_or(Self::Opaque)
    }
}

/// `path` without redundant slashes and dots; `None` if it is relative or climbs.
pub(crate) fn canonical_path(path: &str) -> Option<String> {
    let rest = path.strip_prefix('/')?;
    if !rest.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Some(path.to_owned());
    }
    let mut out = String::with_capacity(path.len());
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            // Only the filesystem knows what `..` means after a link.
            ".." => return None,
            name => {
                out.push('/');
                out.push_str(name);
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l31_what_is_not_canonical_is_opaque() {
        let of = |kind, canonical: &str| Subject::of(&Resource::own(kind, canonical));
        assert_eq!(of(ResourceKind::Path, "/workspace//a/./b/"), Subject::Path("/workspace/a/b".into()));
        assert_eq!(of(ResourceKind::Path, "/"), Subject::Path(String::new()));
        for (kind, text) in [
            (ResourceKind::Path, "a.rs"),
            (ResourceKind::Path, ""),
            (ResourceKind::Path, "/workspace/../etc/passwd"),
            (ResourceKind::Argv, "[]"),
            (ResourceKind::Argv, "git status"),
            (ResourceKind::Argv, "[1]"),
            (ResourceKind::Host, "a b"),
            (ResourceKind::Url, "example.com"),
        ] {
            assert_eq!(of(kind, text), Subject::Opaque, "{text}");
        }
    }
}
