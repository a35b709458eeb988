//! Places that run later: what a program outside of the sandbox runs, or reads to learn what to run, when a person does
//! something ordinary such as `git status`, opening a shell, entering a folder or opening an editor.
//!
//! A call that writes one asks, whatever a broad rule allows; a rule that names the place decides about it. Commands see
//! what exists of the places as read-only.
//!
//! Left out on purpose:
//! - `.gitattributes` and `.gitmodules` start nothing alone. A filter or a merge driver needs an entry in git's
//!   configuration, which is in the list, and git takes no command from `.gitmodules`.
//! - State that tools write at every use (`.gradle/`, `.jj/`, `.ipython/` and `.mvn/` as a whole): only what decides in it is
//!   in the list.
//! - Build files (`Makefile`, `package.json`, `build.rs`, `conftest.py`) are the source that the work is about. A person
//!   who builds runs the whole tree.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::special_names::PathMeaning;

/// What sort of program runs a place. It decides how commands are kept from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// What git reads in a repository.
    Git,
    /// A state of git that git itself makes and goes on with: commands may change it, `write` and `edit` ask.
    GitState,
    /// What a shell, a login or a connection reads in a home folder.
    Home,
    /// What a tool reads in the folder where a person uses it.
    Tool,
    /// What a build service runs after a push.
    Ci,
    /// What configures Portcullis.
    Ours,
}

/// One place that runs later: files that a program outside the sandbox runs or obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaterPlace {
    /// Names of folders and files, in lower case. A `/` at the end says that everything beneath counts too; a `*` that
    /// begins or ends a name stands for any characters.
    pub pattern: &'static str,
    pub kind: PlaceKind,
    /// One sentence that says what runs it.
    pub why: &'static str,
}

const fn place(kind: PlaceKind, pattern: &'static str, why: &'static str) -> LaterPlace {
    LaterPlace { pattern, kind, why }
}

use PlaceKind::{Ci, Git, GitState, Home, Ours, Tool};

/// Every place, at any depth of a tree.
pub const PLACES: &[LaterPlace] = &[
    place(Ours, ".portcullis/", "Portcullis reads its rules and settings there"),
    place(Ours, ".portcullis-runtime/", "Portcullis keeps its own state there"),
    place(Git, ".git", "it tells git which repository the folder is, and so which configuration and hooks git uses"),
    place(Git, ".git/config", "git runs the programs that it names, for instance at `git status`"),
    place(Git, ".git/config.worktree", "git runs the programs that it names, for instance at `git status`"),
    place(Git, ".git/hooks/", "git runs what is in it at commits, checkouts and pushes"),
    place(Git, ".git/commondir", "git takes configuration and hooks from the folder that it names"),
    place(Git, ".git/info/attributes", "git chooses filters and diff programs by it"),
    place(Git, ".git/worktrees/", "git finds configuration and hooks of linked working trees through it"),
    place(Git, ".git/modules/", "git finds configuration and hooks of submodules in it"),
    place(GitState, ".git/rebase-merge/", "`git rebase --continue` runs the commands in it"),
    place(GitState, ".git/rebase-apply/", "`git rebase --continue` goes on with what is in it"),
    place(GitState, ".git/sequencer/", "`git cherry-pick --continue` goes on with what is in it"),
    place(Tool, ".githooks/", "repositories name it as the folder of their git hooks"),
    place(Tool, ".husky/", "husky makes git run what is in it at commits and pushes"),
    place(Tool, ".lefthook/", "lefthook makes git run what is in it"),
    place(Tool, "lefthook.*", "lefthook makes git run the commands in it"),
    place(Tool, "lefthook-local.*", "lefthook makes git run the commands in it"),
    place(Tool, ".lefthook.*", "lefthook makes git run the commands in it"),
    place(Tool, ".lefthook-local.*", "lefthook makes git run the commands in it"),
    place(Tool, ".git-hooks/", "repositories name it as the folder of their git hooks"),
    place(Tool, ".simple-git-hooks.*", "simple-git-hooks makes git run the commands in it"),
    place(Tool, "simple-git-hooks.*", "simple-git-hooks makes git run the commands in it"),
    place(Tool, ".hg/hgrc", "Mercurial runs the hooks and programs that it names"),
    place(Tool, ".hg/hgrc-not-shared", "Mercurial runs the hooks and programs that it names"),
    place(Tool, ".sl/config", "Sapling runs the hooks and programs that it names"),
    place(Tool, ".jj/repo/config.toml", "jj runs the programs that it names"),
    place(Tool, ".jj/workspace-config.toml", "jj runs the programs that it names"),
    place(Tool, ".pre-commit-config.yaml", "pre-commit runs the hooks that it names at every commit"),
    place(Tool, ".pre-commit-config.yml", "pre-commit runs the hooks that it names at every commit"),
    place(Tool, ".overcommit.yml", "overcommit runs the hooks that it names at every commit"),
    place(Home, ".bashrc", "every interactive bash runs it"),
    place(Home, ".bash_profile", "every login shell runs it"),
    place(Home, ".bash_login", "every login shell runs it"),
    place(Home, ".bash_logout", "bash runs it when a login shell ends"),
    place(Home, ".bash_aliases", "many .bashrc files run it"),
    place(Home, ".bashrc.d/", "many .bashrc files run what is in it"),
    place(Home, ".profile", "every login runs it"),
    place(Home, ".zshrc", "every interactive zsh runs it"),
    place(Home, ".zshenv", "every zsh runs it"),
    place(Home, ".zprofile", "every zsh login runs it"),
    place(Home, ".zlogin", "every zsh login runs it"),
    place(Home, ".zlogout", "zsh runs it when a login shell ends"),
    place(Home, "*.zwc", "zsh runs it in place of the file that it was compiled from"),
    place(Home, ".zcompdump*", "every interactive zsh with completions runs it"),
    place(Home, ".kshrc", "every interactive ksh runs it"),
    place(Home, ".cshrc", "every csh runs it"),
    place(Home, ".tcshrc", "every tcsh runs it"),
    place(Home, ".login", "every csh login runs it"),
    place(Home, ".xprofile", "a graphical login runs it"),
    place(Home, ".xinitrc", "`startx` runs it"),
    place(Home, ".xsession", "a graphical login runs it"),
    place(Home, ".xsessionrc", "a graphical login runs it"),
    place(Home, ".pam_environment", "every login takes variables from it"),
    place(Home, ".inputrc", "shells bind keys to commands by it"),
    place(Home, ".tmux.conf", "tmux runs the commands in it"),
    place(Home, ".screenrc", "screen runs the commands in it"),
    place(Home, ".bash_completion", "interactive shells run it with their completions"),
    place(Home, ".local/share/bash-completion/", "interactive shells run what is in it with their completions"),
    place(Home, ".cargo/env", "start-up files of shells run it where rustup is installed"),
    place(Home, ".xonshrc", "every xonsh runs it"),
    place(Home, ".direnvrc", "direnv runs it when a shell enters a folder"),
    place(Home, ".hgrc", "Mercurial runs the hooks and programs that it names"),
    place(Home, ".psqlrc", "psql runs the commands in it"),
    place(Home, ".sqliterc", "sqlite3 runs the commands in it"),
    place(Home, ".ipython/profile_default/startup/", "IPython runs the code in it"),
    place(Home, ".ipython/profile_default/ipython_config.py", "IPython runs the code in it"),
    place(Home, ".ipython/extensions/", "IPython loads the code in it"),
    place(Home, ".config/emacs/", "emacs runs the code in it"),
    place(Home, ".config/helix/", "Helix starts the language servers that it names"),
    place(Home, ".config/zed/", "Zed runs the tasks and language servers that it names"),
    place(Home, ".config/mise/", "mise runs its hooks when a shell enters a folder"),
    place(Home, ".config/direnv/", "direnv runs what is in it when a shell enters a folder"),
    place(Home, ".config/tmux/", "tmux runs the commands in it"),
    place(Home, ".config/nushell/", "every nushell runs what is in it"),
    place(Home, ".config/kitty/", "kitty starts the programs that it names"),
    place(Home, ".config/i3/", "i3 starts the programs that it names"),
    place(Home, ".config/sway/", "sway starts the programs that it names"),
    place(Home, ".config/hypr/", "Hyprland starts the programs that it names"),
    place(Home, ".config/jj/", "jj runs the programs that it names"),
    place(Home, ".gradle/init.gradle", "every gradle build runs it"),
    place(Home, ".gradle/init.gradle.kts", "every gradle build runs it"),
    place(Home, ".gradle/init.d/", "every gradle build runs what is in it"),
    place(Home, ".config/fish/", "every fish runs what is in it"),
    place(Home, ".config/git/", "git runs the programs that its configuration names"),
    place(Home, ".config/systemd/", "systemd starts the services in it at login"),
    place(Home, ".config/autostart/", "the desktop starts the programs in it at login"),
    place(Home, ".config/environment.d/", "every login takes variables from it"),
    place(Home, ".config/nvim/", "nvim runs what is in it"),
    place(Home, ".config/portcullis/", "Portcullis reads a person's rules and settings there"),
    place(Home, ".gitconfig", "git runs the programs that it names"),
    place(Home, ".local/bin/", "shells find programs in it before those of the system"),
    place(Home, ".vimrc", "vim runs the commands in it"),
    place(Home, ".gvimrc", "gvim runs the commands in it"),
    place(Home, ".vim/", "vim runs the scripts in it"),
    place(Home, ".config/vim/", "vim runs the scripts in it"),
    place(Home, ".emacs", "emacs runs the code in it"),
    place(Home, ".emacs.el*", "emacs runs the code in it"),
    place(Home, ".emacs.d/", "emacs runs the code in it"),
    place(Home, ".gnupg/", "gpg starts the programs that its configuration names"),
    place(Home, ".ssh/", "ssh runs the commands that its configuration names, and lets in the keys it lists"),
    place(Home, ".docker/cli-plugins/", "docker runs the programs in it"),
    place(Home, ".kube/config", "kubectl runs the programs that it names to log in"),
    place(Home, ".aws/config", "aws runs the programs that it names to log in"),
    place(Tool, ".envrc", "direnv runs it when a shell enters the folder"),
    place(Tool, ".direnv/", "direnv runs what is in it when a shell enters the folder"),
    place(Tool, ".autoenv", "autoenv runs it when a shell enters the folder"),
    place(Tool, ".autoenv.zsh", "autoenv runs it when a shell enters the folder"),
    place(Tool, ".mise.local.toml", "mise runs its hooks when a shell enters the folder"),
    place(Tool, "mise.local.toml", "mise runs its hooks when a shell enters the folder"),
    place(Tool, ".mise/", "mise runs the tasks and hooks in it"),
    place(Tool, ".tool-versions", "asdf and mise choose by it which programs a shell finds"),
    place(Tool, ".mise.toml", "mise runs its hooks when a shell enters the folder"),
    place(Tool, "mise.toml", "mise runs its hooks when a shell enters the folder"),
    place(Tool, ".vscode/", "VS Code runs tasks and programs that the settings in it name"),
    place(Tool, "*.code-workspace", "VS Code runs tasks and programs that the settings in it name"),
    place(Tool, "*.sublime-project", "Sublime Text runs the build systems that it names"),
    place(Tool, ".vs/", "Visual Studio runs the tasks and launches in it"),
    place(Tool, ".fleet/", "Fleet runs the configurations in it"),
    place(Tool, ".helix/", "Helix starts the language servers that it names"),
    place(Tool, ".devcontainer/", "editors run its commands when they open the folder in a container"),
    place(Tool, ".devcontainer.json", "editors run its commands when they open the folder in a container"),
    place(Tool, ".idea/", "JetBrains editors run the configurations in it"),
    place(Tool, ".zed/", "Zed runs the tasks and language servers that it names"),
    place(Tool, ".exrc", "vi runs the commands in it where `exrc` is set"),
    place(Tool, ".nvimrc", "nvim runs the commands in it where `exrc` is set"),
    place(Tool, ".nvim.lua", "nvim runs it where `exrc` is set"),
    place(Tool, ".lazy.lua", "lazy.nvim runs it in the folder"),
    place(Tool, ".dir-locals*", "emacs evaluates it for the files of the folder"),
    place(Tool, ".gdbinit", "gdb runs the commands in it"),
    place(Tool, ".lldbinit", "lldb runs the commands in it"),
    place(Tool, ".pdbrc", "the Python debugger runs the commands in it"),
    place(Tool, ".irbrc", "irb runs the code in it"),
    place(Tool, ".pryrc", "pry runs the code in it"),
    place(Tool, ".rprofile", "R runs it when it starts in the folder"),
    place(Tool, ".ghci", "ghci runs the commands in it"),
    place(Tool, ".iex.exs", "iex runs the code in it"),
    place(Tool, ".ocamlinit", "the OCaml toplevel runs the code in it"),
    place(Tool, ".erlang", "the Erlang shell runs the code in it"),
    place(Tool, ".npmrc", "npm takes registries, scripts and shells from it"),
    place(Tool, ".yarnrc", "yarn runs the program that it names"),
    place(Tool, ".yarnrc.yml", "yarn runs the program that it names"),
    place(Tool, ".yarn/releases/", "yarn runs the release in it"),
    place(Tool, ".yarn/plugins/", "yarn loads the plugins in it"),
    place(Tool, ".pnpmfile.*", "pnpm runs it at every install"),
    place(Tool, "bunfig.toml", "bun loads the code that it names before every script"),
    place(Tool, ".bundle/config", "bundler takes sources and paths of programs from it"),
    place(Tool, ".mvn/extensions.xml", "maven loads the code that it names at every build"),
    place(Tool, ".mvn/jvm.config", "maven starts Java with the agents that it names"),
    place(Tool, ".mvn/maven.config", "maven takes settings and extensions from it"),
    place(Tool, ".mvn/wrapper/maven-wrapper.jar", "`./mvnw` runs it"),
    place(Tool, ".mvn/wrapper/maven-wrapper.properties", "`./mvnw` downloads and runs what it names"),
    place(Tool, ".cargo/config.toml", "cargo runs the linkers, wrappers and runners that it names"),
    place(Tool, ".cargo/config", "cargo runs the linkers, wrappers and runners that it names"),
    place(Tool, "rust-toolchain", "cargo and rustc run the toolchain that it names, also one in a folder"),
    place(Tool, "rust-toolchain.toml", "cargo and rustc run the toolchain that it names, also one in a folder"),
    place(Tool, "gradle/wrapper/", "`./gradlew` runs what is in it, and what it downloads"),
    place(Tool, ".huskyrc*", "husky makes git run the commands in it"),
    place(Tool, ".lintstagedrc*", "lint-staged runs the commands in it at every commit"),
    place(Tool, ".pnp.cjs", "yarn loads it before every script"),
    place(Tool, ".pnp.loader.mjs", "yarn loads it before every script"),
    place(Tool, "ansible.cfg", "ansible loads the plugins and runs the programs that it names"),
    place(Home, ".ansible.cfg", "ansible loads the plugins and runs the programs that it names"),
    place(Tool, "pip.conf", "pip installs from the places that it names"),
    place(Tool, ".proverc", "prove takes its options from it, also the program that runs tests"),
    place(Tool, ".bazelrc", "bazel takes the programs that it runs from it"),
    place(Tool, "tools/bazel", "bazel runs it in its own place"),
    place(Tool, ".mcp.json", "agents start the servers that it names"),
    place(Tool, ".claude/", "Claude Code runs the hooks that its settings name"),
    place(Tool, ".codex/", "Codex takes rules and servers from it"),
    place(Tool, ".cursor/", "Cursor starts the servers and hooks that it names"),
    place(Tool, ".gemini/", "Gemini CLI starts the servers that its settings name"),
    place(Tool, ".windsurf/", "Windsurf takes rules and servers from it"),
    place(Tool, ".opencode/", "opencode runs the plugins and servers in it"),
    place(Tool, "opencode.json", "opencode starts the servers that it names"),
    place(Tool, "opencode.jsonc", "opencode starts the servers that it names"),
    place(Tool, ".kiro/", "Kiro runs the hooks and servers in it"),
    place(Tool, ".roo/", "Roo Code starts the servers that it names"),
    place(Tool, ".continue/", "Continue starts the servers that it names"),
    place(Tool, ".qwen/", "Qwen Code starts the servers that its settings name"),
    place(Tool, ".amazonq/", "Amazon Q starts the servers that it names"),
    place(Tool, ".junie/", "Junie starts the servers that it names"),
    place(Tool, ".trae/", "Trae starts the servers that it names"),
    place(Tool, "crush.json", "Crush starts the servers that it names"),
    place(Tool, ".crush.json", "Crush starts the servers that it names"),
    place(Tool, ".aider.conf.yml", "aider runs the test and lint commands that it names"),
    place(Ci, ".github/workflows/", "GitHub runs what is in it after a push"),
    place(Ci, ".github/actions/", "GitHub runs what is in it after a push"),
    place(Ci, ".gitlab-ci.yml", "GitLab runs it after a push"),
    place(Ci, ".gitlab/ci/", "GitLab runs what is in it after a push"),
    place(Ci, ".forgejo/workflows/", "Forgejo runs what is in it after a push"),
    place(Ci, ".gitea/workflows/", "Gitea runs what is in it after a push"),
    place(Ci, ".circleci/", "CircleCI runs what is in it after a push"),
    place(Ci, "jenkinsfile", "Jenkins runs it after a push"),
    place(Ci, ".travis.yml", "Travis runs it after a push"),
    place(Ci, "azure-pipelines.yml", "Azure runs it after a push"),
    place(Ci, "azure-pipelines.yaml", "Azure runs it after a push"),
    place(Ci, "bitbucket-pipelines.yml", "Bitbucket runs it after a push"),
    place(Ci, ".drone.yml", "Drone runs it after a push"),
    place(Ci, ".drone.yaml", "Drone runs it after a push"),
    place(Ci, ".zuul.yaml", "Zuul runs it after a push"),
    place(Ci, ".zuul.d/", "Zuul runs what is in it after a push"),
    place(Ci, ".tekton/", "Tekton runs what is in it after a push"),
    place(Ci, ".azure-pipelines/", "Azure runs what is in it after a push"),
    place(Ci, ".woodpecker/", "Woodpecker runs what is in it after a push"),
    place(Ci, ".woodpecker.yml", "Woodpecker runs it after a push"),
    place(Ci, ".woodpecker.yaml", "Woodpecker runs it after a push"),
    place(Ci, ".buildkite/", "Buildkite runs what is in it after a push"),
    place(Ci, "appveyor.yml", "AppVeyor runs it after a push"),
    place(Ci, ".appveyor.yml", "AppVeyor runs it after a push"),
    place(Ci, ".cirrus.yml", "Cirrus runs it after a push"),
    place(Ci, ".teamcity/", "TeamCity runs what is in it after a push"),
    place(Ci, ".semaphore/", "Semaphore runs what is in it after a push"),
    place(Ci, ".builds/", "SourceHut runs what is in it after a push"),
    place(Ci, ".build.yml", "SourceHut runs it after a push"),
    place(Ci, "buildspec.yml", "AWS CodeBuild runs it after a push"),
    place(Ci, "cloudbuild.yaml", "Google Cloud Build runs it after a push"),
    place(Ci, ".gitpod.yml", "Gitpod runs it when a person opens the repository"),
    place(Ci, ".readthedocs.yaml", "Read the Docs runs the jobs in it after a push"),
    place(Ci, ".readthedocs.yml", "Read the Docs runs the jobs in it after a push"),
    place(Ci, "netlify.toml", "Netlify runs the build that it names after a push"),
];

impl LaterPlace {
    /// Its names, outermost first.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.pattern.trim_end_matches('/').split('/').collect::<Vec<_>>().into_iter()
    }

    /// Whether its outermost name is this one.
    #[must_use]
    pub fn is_begun_by(&self, name: &str) -> bool {
        let first = self.pattern.split('/').next().unwrap_or_default();
        is_name(first, name)
    }

    /// Whether everything beneath it counts as well.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.pattern.ends_with('/')
    }

    /// Whether commands see what exists of it as read-only, and are told of if they make it.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.kind != GitState
    }

    /// The entry with this pattern.
    #[must_use]
    pub fn by_pattern(pattern: &str) -> Option<&'static Self> {
        PLACES.iter().find(|place| place.pattern == pattern)
    }

    /// The place that a path in a git folder is, whatever the folder is called; `rest` begins in that folder.
    #[must_use]
    pub fn in_git_folder(rest: &str) -> Option<&'static Self> {
        runs_later(&format!("/.git/{rest}"))
    }
}

/// The whole names with which places begin, and those with a `*`. A look through a tree asks this of every name.
static FIRST: LazyLock<(HashSet<&'static str>, Vec<&'static str>)> = LazyLock::new(|| {
    let first = PLACES.iter().filter_map(|place| place.pattern.split('/').next());
    let (open, whole): (Vec<&str>, Vec<&str>) = first.partition(|name| name.contains('*'));
    (whole.into_iter().collect(), open)
});

/// Whether a place may begin with this name.
#[must_use]
pub fn may_begin(name: &str) -> bool {
    let (whole, open) = &*FIRST;
    whole.contains(name.to_ascii_lowercase().as_str()) || open.iter().any(|meant| is_name(meant, name))
}

/// Whether one name is the one meant. Letter case does not count: some file systems do not tell it apart.
pub(crate) fn is_name(meant: &str, name: &str) -> bool {
    let (is, at) = (name.as_bytes(), meant.len().saturating_sub(1));
    match (meant.strip_prefix('*'), meant.strip_suffix('*')) {
        (Some(end), _) => is.len() >= at && is[is.len() - at..].eq_ignore_ascii_case(end.as_bytes()),
        (None, Some(start)) => is.len() >= at && is[..at].eq_ignore_ascii_case(start.as_bytes()),
        (None, None) => meant.eq_ignore_ascii_case(name),
    }
}

/// The outermost place that a canonical path is, or lies in.
#[must_use]
pub fn runs_later(path: &str) -> Option<&'static LaterPlace> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let mut all = found(&names);
    all.sort_by_key(|(start, _)| *start);
    all.first().map(|(_, place)| *place)
}

/// Every place that the path is or lies in, with the number of the name at which it begins.
fn found(names: &[&str]) -> Vec<(usize, &'static LaterPlace)> {
    let mut out = Vec::new();
    // Nearly no name of a tree begins a place.
    for (start, name) in names.iter().enumerate().filter(|(_, name)| may_begin(name)) {
        for place in PLACES {
            let mut meant = place.names();
            let Some(first) = meant.next() else { continue };
            let length = meant.len() + 1;
            let rest = &names[start + 1..];
            let fits = is_name(first, name)
                && rest.len() + 1 >= length
                && meant.zip(rest).all(|(meant, name)| is_name(meant, name))
                && (place.is_folder() || rest.len() + 1 == length);
            if fits {
                out.push((start, place));
            }
        }
    }
    out
}

/// What a rule must name to speak of this path: every place that it lies in.
pub(crate) fn hits(path: &str) -> Vec<PathMeaning> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let hit = |(start, place): (usize, &'static LaterPlace)| PathMeaning {
        name: place.pattern,
        why: place.why,
        signs: place.names().enumerate().map(|(at, name)| (start + at, name.trim_matches('*'))).collect(),
    };
    found(&names).into_iter().map(hit).collect()
}

/// The same of a place that only the tree can tell, such as a git folder with another name.
pub(crate) fn hit_of(place: &'static LaterPlace, path: &str) -> PathMeaning {
    let depth = path.split('/').filter(|name| !name.is_empty()).count();
    let signs = place.names().filter(|name| *name != ".git").flat_map(|name| (0..depth).map(move |at| (at, name)));
    PathMeaning { name: place.pattern, why: place.why, signs: signs.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found_at_the_root_and_deep_down_in_any_letter_case() {
        for place in PLACES {
            let names = place.pattern.trim_end_matches('/').replace('*', "a");
            assert!(may_begin(names.split('/').next().unwrap_or_default()), "{names}");
            for path in [format!("/workspace/{names}"), format!("/workspace/a/b/{}", names.to_uppercase())] {
                assert!(runs_later(&path).is_some(), "{path}");
            }
            let beneath = format!("/workspace/{names}/x/y");
            let deep = found(&beneath[1..].split('/').collect::<Vec<_>>()).iter().any(|(_, found)| *found == place);
            assert_eq!(deep, place.is_folder(), "{beneath}");
        }
    }

    #[test]
    fn every_place_has_a_reason_and_stands_once() {
        for (at, place) in PLACES.iter().enumerate() {
            assert!(place.why.len() > 10 && !place.why.ends_with('.'), "{}", place.pattern);
            assert_eq!(place.pattern, place.pattern.to_lowercase(), "{}", place.pattern);
            assert!(!PLACES[..at].iter().any(|other| other.pattern == place.pattern), "{} twice", place.pattern);
        }
    }

    #[test]
    fn every_file_of_a_family_is_a_place() {
        for (names, endings) in [
            ("lefthook .lefthook lefthook-local .lefthook-local", "yml yaml toml json jsonc"),
            (".simple-git-hooks simple-git-hooks", "json js cjs mjs"),
            (".pnpmfile", "cjs mjs"),
            (".dir-locals .dir-locals-2 .emacs", "el"),
            (".zshrc .zshenv .zprofile .zlogin .bash_completion.d/x", "zwc"),
        ] {
            for (name, ending) in names.split(' ').flat_map(|name| endings.split(' ').map(move |end| (name, end))) {
                let path = format!("/workspace/a/{name}.{ending}");
                assert!(runs_later(&path).is_some(), "{path}");
            }
        }
    }

    #[test]
    fn ordinary_files_are_no_places() {
        for path in [
            "/workspace/src/main.rs",
            "/workspace/.gitignore",
            "/workspace/.gitattributes",
            "/workspace/.git/index",
            "/workspace/.git/refs/heads/main",
            "/workspace/github/workflows/a.yml",
            "/workspace/.github/CODEOWNERS",
            "/workspace/config",
            "/workspace/hooks/a",
            "/workspace/.envrc.example",
            "/workspace/envrc",
            "/workspace/package.json",
            "/workspace/.cargo/registry/x",
            "/workspace/.config/app.toml",
            "/workspace/.gradle/8.5/fileHashes/fileHashes.bin",
            "/workspace/.jj/repo/op_store/operations/x",
            "/workspace/.jj/working_copy/tree_state",
            "/workspace/.ipython/profile_default/history.sqlite",
            "/workspace/tools/build.sh",
            "/workspace/src/lefthook/mod.rs",
            "/workspace/.cargo/bin/tool",
            "/workspace/crush.jsonl",
            "/workspace/docs/continue/a.md",
        ] {
            assert_eq!(runs_later(path), None, "{path}");
        }
    }

    #[test]
    fn what_decides_in_a_git_folder_counts_under_any_name_of_the_folder() {
        for rest in
            ["hooks/pre-commit", "config", "commondir", "info/attributes", "modules/a/b/config", "worktrees/w/x"]
        {
            assert!(LaterPlace::in_git_folder(rest).is_some(), "{rest}");
        }
        assert_eq!(LaterPlace::in_git_folder("objects/aa/bb"), None);
    }
}
