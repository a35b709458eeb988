//! What is known of a line after it was taken apart.

use portcullis_base::{OpenWord, OtherForm};

use super::folders::Folder;

/// What a line would run, as far as its text tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command by its words, wherever in the line it stands. A word that is not literal is
    /// given as it is written. A command that runs in two folders is there twice.
    pub commands: Vec<Vec<String>>,
    /// Of each of `commands`: the folder it runs in.
    pub folders: Vec<Folder>,
    /// Those of `commands` that the line gives input by a pipe, a here-document, a here-string or a file, and
    /// that may do more with it than show it. Their words do not tell what they do.
    pub fed: Vec<Vec<String>>,
    /// Files that redirections name.
    pub redirections: Vec<RedirectedFile>,
    /// What could not be told, each for one reason. If there is any, the line is opaque.
    pub opaque: Vec<String>,
    /// Of each of `commands`: the words that become known only when the line runs.
    pub open: Vec<Vec<OpenWord>>,
    /// Of each of `commands`: the same with the words that variables of the line hold, and by the names of what its
    /// program is a link to; see [`Analysis::linked`].
    pub linked: Vec<Vec<OtherForm>>,
    /// Whether the line may run any program at all without naming it. Words that are open are not counted.
    pub hides: bool,
    /// Of those of `commands` that may run what they read: the text that the line gives them.
    pub inputs: Vec<(Vec<String>, String)>,
    /// A word about folders may mean something else than it says: folders of nested lines are unknown.
    pub(super) unsettled: bool,
    /// The line may put something else where a folder is that it changes into: only where it starts is known.
    pub(super) replaced: bool,
}

/// A file that a redirection opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectedFile {
    /// As it is written, without its quotes.
    pub path: String,
    pub writes: bool,
}
