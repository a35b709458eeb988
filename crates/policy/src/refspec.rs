//! Refspecs of `git push`: which of its options they stand for, and which branch they lead to (git-push(1)).

use portcullis_command::marks;

use crate::fit::Fit;

/// Whether the words behind `git push` do what its `option` does, without that option among them.
pub(crate) fn does(option: &str, words: &[String]) -> Fit {
    let has =
        |long: &str| words.iter().take_while(|word| *word != "--").any(|word| word.split('=').next() == Some(long));
    let operands = || words.iter().filter(|word| marks::of(word).is_none());
    match option {
        "--force" | "-f" => {
            // "Mirrored refs will be force updated."
            if has("--mirror") || operands().any(|word| word.starts_with('+')) {
                Fit::Yes
            } else if has("--force-with-lease") {
                // It is forced as well, and some people forbid the one in order to have the other.
                Fit::May
            } else {
                Fit::No
            }
        }
        "--delete" | "-d" => {
            let deletes = |word: &String| {
                let refspec = word.trim_start_matches('+');
                refspec.len() > 1 && refspec.starts_with(':')
            };
            if has("--mirror") || has("--prune") || operands().any(deletes) { Fit::Yes } else { Fit::No }
        }
        _ => Fit::No,
    }
}

/// Whether `written` pushes to the branch or tag that `meant` names: `HEAD:main`, `+main` and `refs/heads/main` are `main`.
pub(crate) fn leads_to(meant: &str, written: &str) -> bool {
    let plain = |name: &str| {
        let name = name.trim_start_matches('+');
        let name = name.strip_prefix("refs/").unwrap_or(name);
        name.strip_prefix("heads/").or_else(|| name.strip_prefix("tags/")).unwrap_or(name).to_owned()
    };
    let target = written.rsplit(':').next().unwrap_or(written);
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('-') && !name.contains("//");
    is_name(meant)
        && is_name(target)
        && !meant.contains(':')
        && !written.contains("//")
        && plain(meant) == plain(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refspec_leads_to_the_name_behind_its_colon() {
        for written in ["main", "+main", "HEAD:main", "+HEAD:main", "a:refs/heads/main", ":main", "refs/heads/main"] {
            assert!(leads_to("main", written), "{written}");
        }
        for written in ["main:other", "maintenance", "-main", "https://localhost:main", "main2", "HEAD", ""] {
            assert!(!leads_to("main", written), "{written}");
        }
    }
}
