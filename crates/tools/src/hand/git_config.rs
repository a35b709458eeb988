//! The format of git's configuration, and which of its settings name something that git runs.
//!
//! What git refuses to read is skipped to the end of its line here, and reading goes on: a place too many is guarded, none
//! too few.

/// One setting. Names are in lower case, as git compares them; the part in quotes of a section is as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) section: String,
    pub(super) subsection: Option<Vec<u8>>,
    pub(super) name: String,
    /// `None` where the name stands alone.
    pub(super) value: Option<Vec<u8>>,
}

/// What the value of a git setting names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingValue {
    /// A further file with settings.
    Settings,
    /// The folder of hooks, or another file or folder from which git takes what it runs.
    Path,
    /// A line of a shell, or a program with arguments.
    Command,
    /// The working tree.
    Tree,
    /// Nobody knows. A path in it may be run.
    Unknown,
    /// Nothing that runs.
    Nothing,
}

/// Settings that name a file or folder: section and name.
const PATHS: &[(&str, &str)] = &[
    ("core", "hookspath"),
    ("core", "attributesfile"),
    ("init", "templatedir"),
    ("difftool", "path"),
    ("mergetool", "path"),
    ("browser", "path"),
    ("man", "path"),
];

/// Settings that hold a command. `*` stands for every name.
const COMMANDS: &[(&str, &str)] = &[
    ("core", "sshcommand"),
    ("core", "fsmonitor"),
    ("core", "editor"),
    ("core", "pager"),
    ("core", "askpass"),
    ("core", "gitproxy"),
    ("core", "alternaterefscommand"),
    ("sequence", "editor"),
    ("filter", "*"),
    ("diff", "external"),
    ("diff", "command"),
    ("diff", "textconv"),
    ("merge", "driver"),
    ("credential", "helper"),
    ("gpg", "program"),
    ("gpg", "defaultkeycommand"),
    ("alias", "*"),
    ("pager", "*"),
    ("mergetool", "cmd"),
    ("difftool", "cmd"),
    ("browser", "cmd"),
    ("man", "cmd"),
    ("web", "browser"),
    ("interactive", "difffilter"),
    ("trailer", "cmd"),
    ("trailer", "command"),
    ("tar", "command"),
    ("hook", "*"),
    ("submodule", "update"),
    ("remote", "uploadpack"),
    ("remote", "receivepack"),
    ("uploadpack", "packobjectshook"),
    ("sendemail", "*"),
    ("instaweb", "*"),
    ("guitool", "cmd"),
    ("lfs", "path"),
    ("lfs", "args"),
    ("lfs", "clean"),
    ("lfs", "smudge"),
];

/// Settings whose values are paths, names or addresses that git only reads as data.
const INERT: &[(&str, &str)] = &[
    ("branch", "*"),
    ("url", "*"),
    ("remote", "*"),
    ("submodule", "*"),
    ("user", "*"),
    ("author", "*"),
    ("committer", "*"),
    ("http", "*"),
    ("lfs", "*"),
    ("gitflow", "*"),
    ("color", "*"),
    ("safe", "*"),
    ("core", "excludesfile"),
    ("commit", "template"),
    ("blame", "ignorerevsfile"),
    ("mailmap", "file"),
];

impl Setting {
    /// What its value is.
    pub(super) fn names(&self) -> SettingValue {
        let is = |list: &[(&str, &str)]| {
            list.iter().any(|(section, name)| *section == self.section && (*name == "*" || *name == self.name))
        };
        match (self.section.as_str(), self.name.as_str()) {
            ("include" | "includeif", "path") => SettingValue::Settings,
            ("core", "worktree") => SettingValue::Tree,
            _ if is(PATHS) => SettingValue::Path,
            _ if is(COMMANDS) => SettingValue::Command,
            _ if is(INERT) => SettingValue::Nothing,
            _ => SettingValue::Unknown,
        }
    }
}

/// The value of a setting in the text of a configuration file: the last one counts.
pub(crate) fn git_setting(text: &[u8], section: &str, name: &str) -> Option<String> {
    let is = |setting: &Setting| {
        setting.section == section && setting.subsection.is_none() && setting.name.eq_ignore_ascii_case(name)
    };
    let found = parse(text).into_iter().rev().find(is)?;
    Some(String::from_utf8_lossy(&found.value?).into_owned())
}

/// Every setting of a file.
pub(super) fn parse(text: &[u8]) -> Vec<Setting> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut read = ConfigReader { text, at: 0 };
    let (mut section, mut subsection) = (String::new(), None);
    let mut out = Vec::new();
    while let Some(byte) = read.next() {
        match byte {
            b'#' | b';' => read.rest_of_line(),
            b'[' => match read.header() {
                Some(header) => (section, subsection) = header,
                None => read.rest_of_line(),
            },
            _ if is_space(byte) => {}
            _ if byte.is_ascii_alphabetic() => {
                let mut name = vec![byte.to_ascii_lowercase()];
                while let Some(byte) = read.peek().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
                    name.push(byte.to_ascii_lowercase());
                    read.next();
                }
                while read.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
                    read.next();
                }
                let value = match read.peek() {
                    None | Some(b'\n') => Some(None),
                    Some(b'=') => {
                        read.next();
                        read.value().map(Some)
                    }
                    Some(_) => None,
                };
                match value {
                    Some(value) => out.push(Setting {
                        section: section.clone(),
                        subsection: subsection.clone(),
                        name: String::from_utf8_lossy(&name).into_owned(),
                        value,
                    }),
                    None => read.rest_of_line(),
                }
            }
            _ => read.rest_of_line(),
        }
    }
    out
}

/// What git takes as a space: C's `isspace` without the vertical tab and the form feed.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Reads the text of a git configuration.
struct ConfigReader<'t> {
    text: &'t [u8],
    at: usize,
}

impl ConfigReader<'_> {
    fn peek(&self) -> Option<u8> {
        match self.text.get(self.at..)? {
            [b'\r', b'\n', ..] => Some(b'\n'),
            [byte, ..] => Some(*byte),
            [] => None,
        }
    }

    /// The next byte. A line that ends as on Windows ends like any other.
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += if self.text[self.at] == byte { 1 } else { 2 };
        Some(byte)
    }

    fn rest_of_line(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.next();
        }
    }

    /// The rest of `[section]`, `[section.subsection]` or `[section "subsection"]`.
    fn header(&mut self) -> Option<(String, Option<Vec<u8>>)> {
        let mut section = String::new();
        loop {
            let byte = self.peek().filter(|byte| *byte != b'\n')?;
            self.next();
            match byte {
                b']' => break,
                b' ' | b'\t' => {
                    let subsection = self.quoted_subsection()?;
                    return Some((section, Some(subsection)));
                }
                _ if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    section.push(char::from(byte.to_ascii_lowercase()));
                }
                _ => return None,
            }
        }
        match section.split_once('.') {
            Some((section, subsection)) => Some((section.to_owned(), Some(subsection.as_bytes().to_owned()))),
            None => Some((section, None)),
        }
    }

    fn quoted_subsection(&mut self) -> Option<Vec<u8>> {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            self.next();
        }
        self.peek().filter(|byte| *byte == b'"')?;
        self.next();
        let mut out = Vec::new();
        loop {
            let byte = self.peek().filter(|byte| *byte != b'\n')?;
            self.next();
            match byte {
                b'"' => break,
                b'\\' => {
                    out.push(self.peek().filter(|byte| *byte != b'\n')?);
                    self.next();
                }
                _ => out.push(byte),
            }
        }
        self.peek().filter(|byte| *byte == b']')?;
        self.next();
        Some(out)
    }

    /// What stands behind `=`. `None` if git would refuse it.
    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut out, mut spaces, mut quoted) = (Vec::new(), Vec::new(), false);
        loop {
            let Some(byte) = self.peek() else { return (!quoted).then_some(out) };
            match byte {
                b'\n' => return (!quoted).then_some(out),
                b'#' | b';' if !quoted => {
                    self.rest_of_line();
                    return Some(out);
                }
                _ if is_space(byte) && !quoted => {
                    // Leading and trailing spaces do not belong to it.
                    if !out.is_empty() {
                        spaces.push(byte);
                    }
                    self.next();
                    continue;
                }
                _ => {}
            }
            self.next();
            out.append(&mut spaces);
            match byte {
                b'"' => quoted = !quoted,
                b'\\' => {
                    let escaped = self.peek()?;
                    let meant = match escaped {
                        b'\n' => None,
                        b't' => Some(b'\t'),
                        b'b' => Some(8),
                        b'n' => Some(b'\n'),
                        b'\\' | b'"' => Some(escaped),
                        _ => return None,
                    };
                    self.next();
                    out.extend(meant);
                }
                _ => out.push(byte),
            }
        }
    }
}

/// What may be a path in a command: each of its words, by the rules of quotes and without them, and the whole of it.
pub(super) fn words(value: &[u8]) -> Vec<Vec<u8>> {
    let value = value.strip_prefix(b"!").unwrap_or(value).trim_ascii();
    let mut all = vec![value.to_owned()];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"'\"`;|&()<>{}$=,:".contains(byte);
    all.extend(value.split(ends).map(<[u8]>::to_owned));
    let (mut word, mut quote) = (Vec::new(), None);
    for byte in value {
        match (quote, *byte) {
            (None, b'\'' | b'"') => quote = Some(*byte),
            (Some(end), byte) if byte == end => quote = None,
            (None, byte) if byte.is_ascii_whitespace() => all.push(std::mem::take(&mut word)),
            (_, b'\\') => {}
            (_, byte) => word.push(byte),
        }
    }
    all.push(word);
    all.sort();
    all.dedup();
    all.retain(|word| !word.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// Names with their values.
    type NamedValues = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    /// What git itself reads in a file; `None` if it refuses the file.
    fn by_git(text: &[u8]) -> Option<NamedValues> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config");
        std::fs::write(&file, text).expect("written");
        let mut git = Command::new("git");
        git.args(["config", "--list", "-z", "-f"]).arg(&file).current_dir(&folder).env("HOME", folder.path());
        let done = git.output().expect("git runs");
        let read = |entry: &[u8]| match entry.iter().position(|byte| *byte == b'\n') {
            Some(at) => (entry[..at].to_owned(), Some(entry[at + 1..].to_owned())),
            None => (entry.to_owned(), None),
        };
        let entries = done.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        done.status.success().then(|| entries.map(read).collect())
    }

    fn by_us(text: &[u8]) -> NamedValues {
        let one = |setting: Setting| {
            let mut name = setting.section.into_bytes();
            if let Some(subsection) = setting.subsection {
                name.push(b'.');
                name.extend(subsection);
            }
            name.push(b'.');
            name.extend(setting.name.bytes());
            (name, setting.value)
        };
        parse(text).into_iter().map(one).collect()
    }

    /// Pieces from which files are made that git reads, mostly.
    fn piece() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "[core]",
            "[core] ",
            "[Core \"A b\"]\n",
            "[a \"x\\\"y\\\\\"]",
            "[include]\n",
            "[a.B]\n",
            "\n",
            "\r\n",
            " ",
            "\t",
            "hooksPath",
            "x-1",
            "path",
            " = ",
            "=",
            "a/b",
            "\"",
            "\"q u ; #\"",
            "\\\n",
            "\\\\",
            "\\n",
            "\\t",
            "\\\"",
            "; comment",
            "# [core]",
            "~/x",
            "!sh -c 'x'",
            "é",
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn whatever_git_reads_is_read_as_git_reads_it(
            lines in prop::collection::vec((prop::collection::vec(piece(), 0..5), any::<bool>()), 1..6),
        ) {
            let mut text = String::from("[core]\n");
            for (pieces, setting) in lines {
                text += if setting { "\nname = " } else { "\n" };
                pieces.iter().for_each(|piece| text += piece);
            }
            if let Some(expected) = by_git(text.as_bytes()) {
                // Older versions of git make one space of each space in a value.
                let plain = |all: NamedValues| -> Vec<_> {
                    let space = |byte: u8| if matches!(byte, b'\t' | b'\r') { b' ' } else { byte };
                    all.into_iter()
                        .map(|(name, value)| (name, value.map(|value| value.into_iter().map(space).collect::<Vec<u8>>())))
                        .collect()
                };
                prop_assert_eq!(plain(by_us(text.as_bytes())), plain(expected), "{:?}", text);
            }
        }
    }

    #[test]
    fn every_way_to_write_a_setting_says_the_same() {
        let same = |text: &str| {
            let found = by_us(text.as_bytes());
            assert_eq!(found, [(b"core.hookspath".to_vec(), Some(b"a/b".to_vec()))], "{text:?}");
            assert_eq!(Some(found), by_git(text.as_bytes()), "{text:?}");
        };
        for text in [
            "[core]\n\thooksPath = a/b\n",
            "[core] hooksPath=a/b",
            "[CORE]HOOKSPATH=a/b ; comment",
            "[core]\nhooksPath = \"a\"/b # x\r\n",
            "[core]\nhooksPath = a\\\n/b",
            "\u{feff}[core]\nhooksPath = a/\"b\"",
            "# [x]\n[core]\n  hooksPath   =   a/b   \n",
        ] {
            same(text);
        }
    }

    #[test]
    fn the_paths_of_a_command_are_among_its_words() {
        for (value, path) in [
            ("!./tools/x.sh --all", "./tools/x.sh"),
            ("sh -c 'tools/x.sh \"$1\"'", "tools/x.sh"),
            ("\"my tools/x.sh\" %O", "my tools/x.sh"),
            ("A=1 env B=tools/x.sh", "tools/x.sh"),
            ("!f() { tools/x.sh; }; f", "tools/x.sh"),
            ("my tools/x.sh", "my tools/x.sh"),
        ] {
            assert!(words(value.as_bytes()).contains(&path.as_bytes().to_vec()), "{value}");
        }
    }
}
