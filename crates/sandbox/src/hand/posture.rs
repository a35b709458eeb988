//! What stands between a command and the machine: found by trying, told in words.

use portcullis_base::IsolationLevel;
use serde::Serialize;

/// One layer of isolation, in the order in which they are put up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// This program cannot be its own launcher and names no other.
    Launcher,
    /// A user namespace of its own: no rights over the machine, whichever user started it.
    UserNamespace,
    /// Mount, pid, ipc, uts and (unless the network is the host's) net namespaces.
    Namespaces,
    /// A root of its own with only the view in it.
    PrivateRoot,
    /// A `/proc` that shows only its own processes.
    FreshProc,
    /// Memory and process limits for the whole tree.
    Cgroup,
    Landlock,
    Seccomp,
}

impl Layer {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Launcher => "launcher",
            Self::UserNamespace => "user_namespace",
            Self::Namespaces => "namespaces",
            Self::PrivateRoot => "private_root",
            Self::FreshProc => "fresh_proc",
            Self::Cgroup => "cgroup",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
        }
    }
}

/// A layer of the isolation that is missing here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingLayer {
    pub layer: Layer,
    /// What the kernel said, at which step, and what that leaves open.
    pub why: String,
    /// What would raise it.
    pub raise: String,
}

/// The isolation that was reached, and what it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Posture {
    pub level: IsolationLevel,
    pub missing: Vec<MissingLayer>,
}

impl Posture {
    /// Whether the view stands at its virtual places (`/workspace`). Otherwise a command sees the
    /// host's own paths, and its working directory is the host directory of the bind it lies in.
    #[must_use]
    pub fn virtual_paths(&self) -> bool {
        self.level == IsolationLevel::Full
    }

    /// Each missing layer in one line, as an event keeps it.
    #[must_use]
    pub fn missing_lines(&self) -> Vec<String> {
        self.missing.iter().map(|one| format!("{}: {}", one.layer.as_str(), one.why)).collect()
    }
}

/// The layers of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layers(u8);

impl Layers {
    /// All that a launcher puts up itself; a cgroup is its caller's.
    pub(crate) const ALL: Self = Self(
        Self::bit(Layer::UserNamespace)
            | Self::bit(Layer::Namespaces)
            | Self::bit(Layer::PrivateRoot)
            | Self::bit(Layer::FreshProc)
            | Self::bit(Layer::Landlock)
            | Self::bit(Layer::Seccomp),
    );

    const fn bit(layer: Layer) -> u8 {
        1 << layer as u8
    }

    pub(crate) fn has(self, layer: Layer) -> bool {
        self.0 & Self::bit(layer) != 0
    }

    /// Without a layer, and without what cannot be put up without it.
    pub(crate) fn without(self, layer: Layer) -> Self {
        let gone = match layer {
            Layer::Namespaces => {
                Self::bit(Layer::Namespaces)
                    | Self::bit(Layer::UserNamespace)
                    | Self::bit(Layer::PrivateRoot)
                    | Self::bit(Layer::FreshProc)
            }
            Layer::PrivateRoot => Self::bit(Layer::PrivateRoot) | Self::bit(Layer::FreshProc),
            other => Self::bit(other),
        };
        Self(self.0 & !gone)
    }

    /// Without what makes a level better than this one.
    pub(crate) fn at_most(self, level: IsolationLevel) -> Self {
        let gone: &[Layer] = match level {
            IsolationLevel::Full => &[],
            IsolationLevel::NoPivot => &[Layer::PrivateRoot],
            IsolationLevel::NoNamespaces => &[Layer::Namespaces],
            IsolationLevel::SeccompOnly => &[Layer::Namespaces, Layer::Landlock],
            IsolationLevel::None => &[Layer::Namespaces, Layer::Landlock, Layer::Seccomp],
        };
        gone.iter().fold(self, |layers, layer| layers.without(*layer))
    }

    pub(crate) fn to_byte(self) -> u8 {
        self.0
    }

    pub(crate) fn from_byte(byte: u8) -> Self {
        Self(byte & Self::ALL.0)
    }

    /// What these layers promise. Without a root of its own only Landlock keeps files away; without
    /// either, or without seccomp, there is no name for what is left but the weaker one.
    pub(crate) fn level(self) -> IsolationLevel {
        if !self.has(Layer::Seccomp) {
            IsolationLevel::None
        } else if self.has(Layer::PrivateRoot) {
            IsolationLevel::Full
        } else if !self.has(Layer::Landlock) {
            IsolationLevel::SeccompOnly
        } else if self.has(Layer::Namespaces) {
            IsolationLevel::NoPivot
        } else {
            IsolationLevel::NoNamespaces
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_never_better_than_the_layers_it_rests_on() {
        let all = Layers::ALL;
        assert_eq!(all.level(), IsolationLevel::Full);
        assert_eq!(all.without(Layer::UserNamespace).level(), IsolationLevel::Full);
        assert_eq!(all.without(Layer::PrivateRoot).level(), IsolationLevel::NoPivot);
        assert_eq!(all.without(Layer::Namespaces).level(), IsolationLevel::NoNamespaces);
        assert_eq!(all.without(Layer::PrivateRoot).without(Layer::Landlock).level(), IsolationLevel::SeccompOnly);
        assert_eq!(all.without(Layer::Namespaces).without(Layer::Landlock).level(), IsolationLevel::SeccompOnly);
        assert_eq!(all.without(Layer::Seccomp).level(), IsolationLevel::None);
        assert_eq!(Layers::from_byte(all.to_byte()), all);
    }

    #[test]
    fn at_most_only_takes_away() {
        use IsolationLevel::{Full, NoNamespaces, NoPivot, None, SeccompOnly};
        for level in [Full, NoPivot, NoNamespaces, SeccompOnly, None] {
            assert_eq!(Layers::ALL.at_most(level).level(), level);
            for lesser in [NoPivot, NoNamespaces, SeccompOnly, None] {
                let had = Layers::ALL.at_most(lesser);
                let left = had.at_most(level);
                assert_eq!(had.to_byte() | left.to_byte(), had.to_byte(), "{lesser:?} at most {level:?}");
            }
        }
    }
}
