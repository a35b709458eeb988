//! A workspace, a runtime over it, and bash as the oracle.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use portcullis::hand::Launcher;
use portcullis::{CallOutcome, HandSettings, IsolationLevel, Runtime, SessionId};
use portcullis_base::{Code, Reason};
use portcullis_event::Observed;
use portcullis_policy::{Layer, PolicyBuilder, parse_rules};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The launcher of these tests.
pub const PORTCULLIS: &str = env!("CARGO_BIN_EXE_portcullis");

pub struct World {
    pub tree: TempDir,
    pub runtime: Runtime,
    pub session: SessionId,
}

impl World {
    /// An empty workspace.
    pub async fn new() -> Self {
        Self::with("", IsolationLevel::Full).await
    }

    pub async fn with(rules: &str, minimum: IsolationLevel) -> Self {
        Self::over(tempfile::tempdir().expect("a folder"), rules, minimum, Launcher::helper(PORTCULLIS)).await
    }

    pub async fn over(tree: TempDir, rules: &str, minimum: IsolationLevel, launcher: Launcher) -> Self {
        let rules = parse_rules(rules, "rules.toml", Layer::User).expect("rules");
        let runtime = Runtime::builder()
            .workspace(tree.path())
            .policy(PolicyBuilder::new().rules(rules).build().expect("a policy"))
            .sandbox(HandSettings { minimum, ..HandSettings::default() })
            .launcher(launcher)
            .build()
            .expect("a runtime");
        let session = runtime.create_session("test").await.expect("a session");
        Self { tree, runtime, session }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.tree.path().join(name)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, content).expect("a file");
    }

    pub fn link(&self, to: &str, name: &str) {
        symlink(to, self.path(name)).expect("a link");
    }

    pub async fn call(&self, tool: &str, input: Value) -> Observed {
        match self.runtime.call(self.session, tool, &input.to_string()).await.expect("called") {
            CallOutcome::Observed(observed) => observed.session_view().clone(),
            other => panic!("{tool} {input}: {other:?}"),
        }
    }

    pub async fn bash(&self, line: &str) -> Observed {
        self.call("bash", json!({"command": line, "maxOutputChars": 40_000})).await
    }

    /// What a line wrote to standard output and its exit code, whether it failed or not.
    pub async fn ran(&self, line: &str) -> (String, i32) {
        let seen = self.bash(line).await;
        result(&seen).unwrap_or_else(|| panic!("{line}: {:?} {:?} {}", seen.code, seen.reason, seen.summary))
    }

    /// The same of bash, in the words of the hand: the workspace is `/workspace`.
    pub fn oracle(&self, line: &str) -> (String, i32) {
        let Output { status, stdout, .. } = Command::new("/bin/bash")
            .args(["-P", "-c", line])
            .current_dir(self.tree.path())
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")])
            .stdin(Stdio::null())
            .output()
            .expect("bash runs");
        let host = self.tree.path().canonicalize().expect("it is there");
        let text = String::from_utf8_lossy(&stdout).replace(host.to_str().expect("text"), "/workspace");
        (text, status.code().expect("it exits"))
    }

    /// Everything in the workspace, with what it holds and when it was changed.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, (u64, i64, i64, Vec<u8>)> {
        fn walk(dir: &Path, found: &mut BTreeMap<PathBuf, (u64, i64, i64, Vec<u8>)>) {
            for entry in fs::read_dir(dir).expect("a directory") {
                let path = entry.expect("an entry").path();
                let meta = path.symlink_metadata().expect("there");
                let content = if meta.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
                found.insert(path.clone(), (meta.ino(), meta.mtime_nsec(), meta.ctime_nsec(), content));
                if meta.is_dir() {
                    walk(&path, found);
                }
            }
        }
        let mut found = BTreeMap::new();
        walk(self.tree.path(), &mut found);
        found
    }

    /// That the line was refused for this reason before anything was started.
    pub async fn refused(&self, line: &str, reason: Reason) -> Observed {
        let seen = self.bash(line).await;
        assert_eq!(
            seen.reason.as_ref().and_then(|r| r.known()),
            Some(reason),
            "{line}: {:?} {}",
            seen.code,
            seen.summary
        );
        assert_eq!(seen.code.known(), Some(Code::RuntimePreconditionFailed), "{line}");
        assert!(seen.invocation_id.is_none(), "{line} was started");
        seen
    }
}

/// One stream as the model was shown it.
pub fn stream(seen: &Observed, name: &str) -> String {
    let parts = seen.content.iter().filter(|part| part.source == name);
    parts.filter_map(|part| part.text.as_deref()).collect()
}

/// Standard output and exit code, if programs ran.
pub fn result(seen: &Observed) -> Option<(String, i32)> {
    assert!(!seen.truncated, "too much to compare");
    let code = match seen.code.known()? {
        Code::Ok | Code::NoMatches => {
            i32::try_from(seen.structured.as_ref()?.get("exitCode")?.as_i64()?).expect("an exit code")
        }
        Code::CommandFailed => seen.exit_code?,
        _ => return None,
    };
    Some((stream(seen, "stdout"), code))
}
