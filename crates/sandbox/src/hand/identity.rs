//! Who a commit is by. A home folder is hidden, and with it the one thing of `~/.gitconfig` without which `git commit`
//! fails: name and address of the person. Nothing else of that file is taken over, for it may name programs and hold
//! credentials.

use std::io;
use std::path::{Path, PathBuf};

/// A configuration of git is text that a person writes.
const FILE_BYTES: u64 = 256 * 1024;

/// Where git reads a person's configuration, the stronger one last.
const FILES: &[&str] = &[".config/git/config", ".gitconfig"];

/// A file in `folder` that names the person of `home` to git, made if there is anything to say.
pub(super) fn file(home: &Path, folder: &Path) -> io::Result<Option<PathBuf>> {
    let (mut name, mut email) = (None, None);
    for place in FILES {
        let place = home.join(place);
        // What cannot be read says nothing.
        let small = place.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES);
        let text = if small { std::fs::read_to_string(&place).unwrap_or_default() } else { String::new() };
        name = value(&text, "name").or(name);
        email = value(&text, "email").or(email);
    }
    let lines: String = [("name", name), ("email", email)]
        .into_iter()
        .filter_map(|(key, value)| {
            Some(format!("\t{key} = \"{}\"\n", value?.replace('\\', "\\\\").replace('"', "\\\"")))
        })
        .collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let (text, place) = (format!("[user]\n{lines}"), folder.join("gitconfig"));
    // Mostly it is there as it should be; another process must never see half of it.
    if std::fs::read_to_string(&place).ok().as_ref() != Some(&text) {
        let new = folder.join(format!("gitconfig.{}", std::process::id()));
        std::fs::write(&new, text)?;
        std::fs::rename(new, &place)?;
    }
    Ok(Some(place))
}

/// The last value of a key of `[user]`, if it is plain.
fn value(text: &str, key: &str) -> Option<String> {
    let (mut inside, mut found) = (false, None);
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            inside = header.split(']').next().is_some_and(|section| section.trim().eq_ignore_ascii_case("user"));
        } else if let Some((name, value)) = line.split_once('=')
            && inside
            && name.trim().eq_ignore_ascii_case(key)
        {
            found = plain(value.trim());
        }
    }
    found
}

/// A value without its quotes and without a comment behind it.
fn plain(text: &str) -> Option<String> {
    let (mut out, mut quoted) = (String::new(), false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => match chars.next()? {
                c @ ('"' | '\\') => out.push(c),
                _ => return None,
            },
            '#' | ';' if !quoted => break,
            c if c.is_control() && c != '\t' => return None,
            c => out.push(c),
        }
    }
    let out = out.trim_end();
    (!quoted && !out.is_empty()).then(|| out.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_named_and_nothing_else_of_the_configuration_is_shown() {
        let home = tempfile::tempdir().expect("a folder");
        let caches = tempfile::tempdir().expect("a folder");
        let made =
            || file(home.path(), caches.path()).expect("made").map(|at| std::fs::read_to_string(at).expect("text"));
        assert_eq!(made(), None);
        std::fs::create_dir_all(home.path().join(".config/git")).expect("folders");
        std::fs::write(home.path().join(".config/git/config"), "[user]\nname = Old\nemail = a@b # mine\n")
            .expect("written");
        assert_eq!(made().as_deref(), Some("[user]\n\tname = \"Old\"\n\temail = \"a@b\"\n"));
        let text = "[credential]\n\thelper = !evil\n\tname = no\n[User]\n\tName = \"Ada \\\"L\\\" ; x\"\n\
                    [url \"https://TOKEN@host\"]\n\tinsteadOf = x\n[user \"sub\"]\nname = other\n";
        std::fs::write(home.path().join(".gitconfig"), text).expect("written");
        assert_eq!(made().as_deref(), Some("[user]\n\tname = \"Ada \\\"L\\\" ; x\"\n\temail = \"a@b\"\n"));
    }

    #[test]
    fn what_is_not_plain_is_left_out() {
        for text in ["name = \"open", "name = a\\nb", "name =", "name = # x", "nam = x"] {
            assert_eq!(value(&format!("[user]\n{text}\n"), "name"), None, "{text}");
        }
        assert_eq!(value("[user]\nname = a\nname = b\n", "name").as_deref(), Some("b"));
    }
}
