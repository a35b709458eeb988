//! The session's own names for places.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::PathFault;
use crate::name::{Name, Step, steps};

/// Where relative paths begin.
pub(crate) const WORKSPACE: &str = "/workspace";

/// A normalised absolute virtual path such as `/workspace/src/a.rs`: for display, keys and rules.
/// No security rests on the text; what is opened is decided by handles.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VirtualPath(String);

impl VirtualPath {
    /// Normalises `text` lexically: `..` removes the name before it and stops at `/`.
    pub fn new(text: &str) -> Result<Self, PathFault> {
        let steps = steps(text)?;
        if !text.starts_with('/') {
            return Err(PathFault::NotAbsolute);
        }
        let mut names = Vec::new();
        for step in steps {
            match step {
                Step::Up => {
                    names.pop();
                }
                Step::Into(name) => names.push(name),
            }
        }
        Ok(Self::from_names(&names))
    }

    /// `/workspace`.
    #[must_use]
    pub fn workspace() -> Self {
        Self(WORKSPACE.to_owned())
    }

    pub(crate) fn from_names(names: &[Name]) -> Self {
        if names.is_empty() {
            return Self("/".to_owned());
        }
        let mut text = String::new();
        for name in names {
            text.push('/');
            text.push_str(name.as_str());
        }
        Self(text)
    }

    /// This place's child.
    #[must_use]
    pub fn join(&self, name: &Name) -> Self {
        let base = if self.0 == "/" { "" } else { &self.0 };
        Self(format!("{base}/{name}"))
    }

    /// Where these steps lead from here, lexically.
    pub(crate) fn walk<'s>(&self, steps: impl IntoIterator<Item = &'s Step>) -> Self {
        let mut names: Vec<&str> = self.components().collect();
        for step in steps {
            match step {
                Step::Up => {
                    names.pop();
                }
                Step::Into(name) => names.push(name.as_str()),
            }
        }
        Self(format!("/{}", names.join("/")))
    }

    /// The whole path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its names from the top.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|piece| !piece.is_empty())
    }

    /// As people and models see it: relative beneath `/workspace` (`.` for itself), else whole.
    #[must_use]
    pub fn display_relative(&self) -> &str {
        match self.0.strip_prefix(WORKSPACE) {
            Some("") => ".",
            Some(rest) => rest.strip_prefix('/').unwrap_or(&self.0),
            None => &self.0,
        }
    }
}

impl fmt::Display for VirtualPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for VirtualPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for VirtualPath {
    type Err = PathFault;

    fn from_str(text: &str) -> Result<Self, PathFault> {
        Self::new(text)
    }
}

impl Serialize for VirtualPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for VirtualPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VirtualPath {
        VirtualPath::new(text).expect("a virtual path")
    }

    #[test]
    fn paths_are_normalised_and_shown_relative_beneath_the_workspace() {
        assert_eq!(path("//workspace/./src//x/../a.rs/").as_str(), "/workspace/src/a.rs");
        assert_eq!(path("/../..").as_str(), "/");
        assert_eq!(path("/workspace/src/a.rs").display_relative(), "src/a.rs");
        assert_eq!(path("/workspace").display_relative(), ".");
        assert_eq!(path("/workspace-evil/a").display_relative(), "/workspace-evil/a");
        assert_eq!(path("/runtime/a").display_relative(), "/runtime/a");
        assert_eq!(VirtualPath::new("src"), Err(PathFault::NotAbsolute));
        assert_eq!(VirtualPath::new(""), Err(PathFault::Empty));
        assert_eq!(VirtualPath::new("/a\0b"), Err(PathFault::Nul));
    }
}
