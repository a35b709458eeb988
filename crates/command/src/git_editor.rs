//! Verbs of git that open an editor. The editor has the input of git, and so what a line gives git to read is typed into it:
//! `printf ':!x' | git commit`.

/// Long options of a verb that take the next word, unless their value is attached. The `--local` of `config` is none, and
/// of `tag` it is the beginning of one.
fn valued(verb: &str) -> &'static [&'static str] {
    match verb {
        "commit" => &[
            "author",
            "cleanup",
            "date",
            "file",
            "fixup",
            "message",
            "pathspec-from-file",
            "reedit-message",
            "reuse-message",
            "squash",
            "template",
            "trailer",
        ],
        "tag" => &["cleanup", "file", "local-user", "message", "trailer"],
        "notes" => &["file", "message", "reedit-message", "ref", "reuse-message"],
        "config" => &["blob", "comment", "default", "file", "type", "url", "value"],
        "rebase" => &["exec", "onto", "strategy", "strategy-option"],
        "revert" | "cherry-pick" => &["cleanup", "mainline", "strategy", "strategy-option"],
        "merge" | "pull" => &["cleanup", "file", "into-name", "message", "strategy", "strategy-option"],
        _ => &[],
    }
}

/// What the options of a verb say of its message.
#[derive(Default)]
struct MessageOptions {
    /// It is given, or taken from elsewhere as it is.
    given: bool,
    /// It is to be edited, or something else is.
    edit: bool,
    /// `-a`, `-s` or `-u` of a tag; `-i` of a rebase.
    letters: String,
    long: Vec<String>,
    operands: Vec<String>,
}

/// Whether git opens an editor by these words, from its verb on.
pub(super) fn opens(verb: &str, words: &[String]) -> bool {
    let read = MessageOptions::of(verb, words);
    let has = |letter: char, long: &str| read.letters.contains(letter) || read.has(long);
    let first = read.operands.first().map_or("", String::as_str);
    // `e` at the question about a piece of a change opens one.
    let picks = has('p', "patch") || (verb == "add" && has('i', "interactive"));
    match verb {
        "commit" => read.edit || picks || !read.given || has('c', "reedit-message"),
        "tag" => {
            let annotates = has('a', "annotate") || has('s', "sign") || has('u', "local-user");
            read.edit || (annotates && !read.given)
        }
        "notes" => match first {
            "edit" => true,
            "add" | "append" => read.edit || !read.given || read.letters.contains('c'),
            "merge" => false,
            _ => read.edit,
        },
        "config" => read.edit || first == "edit",
        "branch" => read.has("edit-description"),
        "replace" => read.edit,
        "rebase" => {
            let steers = ["edit-todo", "continue", "exec", "autosquash", "rebase-merges"];
            has('i', "interactive")
                || has('x', "exec")
                || has('r', "rebase-merges")
                || steers.iter().any(|s| read.has(s))
        }
        "revert" => read.edit || !(read.given || read.letters.contains('n') || read.has("no-commit")),
        "cherry-pick" | "merge" | "pull" => read.edit || read.has("continue"),
        "am" => has('i', "interactive"),
        "add" | "stage" => read.edit || picks,
        "checkout" | "reset" | "restore" | "stash" => picks,
        "mergetool" | "difftool" | "citool" | "gui" | "send-email" => true,
        _ => false,
    }
}

impl MessageOptions {
    fn of(verb: &str, words: &[String]) -> Self {
        // Wherever it stands: a value that looks like it makes a person's matter of a line at most.
        let edit = words.iter().any(|word| matches!(word.as_str(), "--edit" | "-e")) && verb != "notes";
        let mut out = Self { edit, ..Self::default() };
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                out.operands.extend(words.by_ref().map(str::to_owned));
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let amends = |value: &str| value.starts_with("amend:") || value.starts_with("reword:");
                let is = |known: &str| name.len() > 1 && known.starts_with(name);
                let takes = valued(verb).iter().any(|known| is(known));
                let value = if takes && value.is_none() { words.next() } else { value };
                out.given |= ["message", "file", "reuse-message", "no-edit"].iter().any(|known| is(known))
                    || (is("fixup") && value.is_some_and(|value| !amends(value)));
                out.edit |= is("edit") || is("edit-todo");
                out.long.push(name.to_owned());
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                out.letters(verb, letters, &mut words);
            } else {
                out.operands.push(word.to_owned());
            }
        }
        out
    }

    fn letters<'w>(&mut self, verb: &str, letters: &str, words: &mut impl Iterator<Item = &'w str>) {
        for (at, letter) in letters.char_indices() {
            self.letters.push(letter);
            let ends = at + letter.len_utf8() == letters.len();
            let valued_letters = match verb {
                "commit" => "mFCct",
                "tag" => "mFu",
                "notes" => "mFCc",
                "config" => "ft",
                "revert" | "cherry-pick" => "mX",
                "merge" | "pull" => "mFXs",
                "rebase" => "sXx",
                _ => "",
            };
            self.given |= match verb {
                // Of `revert` and `cherry-pick` this is the number of a parent.
                "commit" | "tag" | "notes" | "merge" => matches!(letter, 'm' | 'F') || (letter == 'C' && verb != "tag"),
                _ => false,
            };
            self.edit |= letter == 'e' && !matches!(verb, "notes");
            if valued_letters.contains(letter) {
                if ends {
                    words.next();
                }
                return;
            }
            // The rest of the word is its value: `-Skey`, `-uno`, `-n3`.
            let takes_rest = match verb {
                "commit" => "Su",
                "tag" => "n",
                _ => "S",
            };
            if takes_rest.contains(letter) {
                return;
            }
        }
    }

    /// Git takes any beginning of a name that no other option has.
    fn has(&self, long: &str) -> bool {
        self.long.iter().any(|given| given.len() > 1 && long.starts_with(given.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    #[test]
    fn l31_an_editor_that_git_opens_on_the_input_of_a_line_hides() {
        for line in [
            "printf x | git commit --allow-empty",
            "printf x | TERM=xterm git commit --allow-empty",
            "git commit -a <<< x",
            "git commit --amend < x",
            "git commit -m x -e < x",
            "git commit -m x --edit < x",
            "git commit -c HEAD < x",
            "git commit -Sm < x",
            "git commit -uFno < x",
            "git commit --author -m < x",
            "git commit --author --message=y < x",
            "git commit -t -m < x",
            "git commit --fixup=amend:HEAD < x",
            "git commit -p -m x < x",
            "git -C r commit < x",
            "env git commit < x",
            "git-commit < x",
            "git tag -a v1 < x",
            "git tag -s v1 < x",
            "git tag -u key v1 < x",
            "git config -e < x",
            "git config --global --edit < x",
            "git config --local --edit < x",
            "git config --worktree -e < x",
            "git config -f .git/config -e < x",
            "git config --fil .git/config --ed < x",
            "git config edit < x",
            "git rebase -i HEAD~2 < x",
            "git rebase --interactive HEAD~2 < x",
            "git rebase --continue < x",
            "git notes add < x",
            "git notes edit < x",
            "git branch --edit-description < x",
            "git add -e < x",
            "git add -p < x",
            "git checkout -p < x",
            "git revert HEAD < x",
            "git revert -m 1 HEAD < x",
            "git cherry-pick -e HEAD < x",
            "git merge --edit b < x",
            "git mergetool < x",
            "(git commit) < x",
            "while read x; do git commit; done < x",
            "sudoedit f < x",
            "kubectl edit pod x < x",
            "svn commit < x",
        ] {
            assert!(analyse(line).hides, "{line}");
        }
        for line in [
            "git commit --allow-empty",
            "git commit -m x < x",
            "git commit -am x < x",
            "git commit -qm x < x",
            "git commit -F - <<< x",
            "git commit -aF- <<< x",
            "git commit --file=- < x",
            "git commit -C HEAD < x",
            "git commit --amend --no-edit < x",
            "git commit --message x < x",
            "git commit --fixup HEAD < x",
            "git tag v1 < x",
            "git tag -am x v1 < x",
            "git tag -n3 < x",
            "git config user.name x < x",
            "git rebase main < x",
            "git notes add -m x < x",
            "git notes show < x",
            "git revert --no-edit HEAD < x",
            "git cherry-pick HEAD < x",
            "git merge b < x",
            "git add . < x",
            "git apply < x",
            "git commit < /dev/null",
            "kubectl apply -f - < x",
        ] {
            assert!(!analyse(line).hides, "{line}: {:?}", analyse(line).opaque);
        }
    }

    #[test]
    fn l31_a_program_that_is_an_open_file_hides() {
        for line in [
            "/dev/stdin < x.sh",
            "/dev/fd/0 < x.sh",
            "env /dev/stdin < x.sh",
            "nice /proc/self/fd/0 < x.sh",
            "exec 3<x.sh; /proc/self/fd/3",
            "cd /dev && ./stdin < x.sh",
        ] {
            assert!(analyse(line).hides, "{line}");
        }
        assert!(!analyse("cat /dev/stdin < x").hides);
    }
}
