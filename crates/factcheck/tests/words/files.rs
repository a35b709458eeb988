//! Claims about files and commits, by their place and by what took them back.

use portcullis_base::{Code, Phase};
use portcullis_event::facts::FinalVerdict::{Contradicted, NoClaims, Supported, Unsupported};
use portcullis_factcheck::check;

use crate::world::{bash, claims, edit, facts, file, refused, shell, shell_came_to, verdict};

#[test]
fn l76_what_a_file_is_said_to_hold_now_was_written() {
    let wrote = [file("file_created", "/workspace/new.txt")];
    for answer in [
        "The file new.txt now contains the fix.",
        "`new.txt` now has both lines.",
        "I've put the fix into `new.txt`.",
        "I put a summary of `old.txt` into `new.txt`.",
    ] {
        assert_eq!(verdict(&wrote, answer), Supported, "{answer}");
        assert_eq!(verdict(&[], answer), Contradicted, "{answer}");
    }
    let script = [shell("python3 gen.py", 0, "")];
    assert_eq!(verdict(&script, "`new.txt` now contains the fix."), Unsupported, "a program may have written it");
}

#[test]
fn l76_a_path_is_claimed_by_whole_names() {
    let calls = [edit("/workspace/src/a.rs")];
    for same in ["Edited `src/a.rs`.", "Edited `a.rs`.", "Edited `./src/a.rs`.", "Edited `/workspace/src/a.rs`."] {
        assert_eq!(verdict(&calls, same), Supported, "{same}");
    }
    for other in ["Edited `rc/a.rs`.", "Edited `b/a.rs`.", "Edited `src/a.rs.bak/a.rs`."] {
        assert_eq!(verdict(&calls, other), Contradicted, "{other}");
    }
    assert_eq!(verdict(&calls, "Deleted `src/a.rs`."), Unsupported, "it was modified, and nothing says it is gone");
    let denied = [refused("write", "/workspace/b.rs", Code::UserDenied, Phase::Permission)];
    assert_eq!(verdict(&denied, "Created `b.rs`."), Contradicted);
    // A program may have written it: nobody knows.
    let script = [shell("python3 gen.py", 0, "")];
    assert_eq!(verdict(&script, "Created `b.rs`."), Unsupported);
    let failed = [shell("rm a.txt", 1, "")];
    assert_eq!(verdict(&failed, "Deleted `a.txt`."), Contradicted);
}

#[test]
fn l76_what_git_only_tried_or_took_back_is_not_supported() {
    let after = |lines: &[&str]| {
        let mut calls = vec![edit("/workspace/a.rs")];
        calls.extend(lines.iter().map(|line| shell(line, 0, "")));
        calls
    };
    let committed = "I committed the change.";
    for dry in ["git commit --dry-run", "git add -A && git commit --dry-run -m x"] {
        assert_eq!(verdict(&after(&[dry]), committed), Contradicted, "{dry}");
    }
    for dry in ["git push --dry-run", "git push -n origin main", "git -C . push --dry-run"] {
        assert_eq!(verdict(&after(&[dry]), "Pushed to origin."), Contradicted, "{dry}");
    }
    assert_eq!(verdict(&after(&["git -C . commit -m x"]), committed), Supported);
    assert_eq!(verdict(&after(&["git commit -n -m x"]), committed), Supported, "`-n` runs no hooks");
    for back in
        ["git reset --hard HEAD~1", "git reset --soft HEAD^", "git reset HEAD~2", "git reset --hard origin/main"]
    {
        assert_eq!(verdict(&after(&["git commit -m x", back]), committed), Unsupported, "{back}");
        assert_eq!(verdict(&after(&["git commit -m x", back, "git commit -m y"]), committed), Supported, "{back}");
    }
    for stays in ["git reset", "git reset HEAD a.rs", "git reset --hard", "git reset a.rs"] {
        assert_eq!(verdict(&after(&["git commit -m x", stays]), committed), Supported, "{stays}");
    }
    let edited = "I edited `a.rs`.";
    for back in ["git checkout a.rs", "git checkout -- .", "git restore a.rs", "git stash", "git reset --hard"] {
        assert_eq!(verdict(&after(&[back]), edited), Unsupported, "{back}");
        assert_eq!(verdict(&after(&["git commit -am x", "git stash"]), edited), Supported, "it was committed");
    }
    assert_eq!(verdict(&after(&["git stash", "git stash pop"]), edited), Supported, "it is back");
}

#[test]
fn l76_a_file_that_is_gone_again_holds_nothing() {
    let made = || file("file_created", "/workspace/out/a.txt");
    for gone in ["rm out/a.txt", "rm -rf out", "git rm -f out/a.txt"] {
        let calls = [made(), shell(gone, 0, "")];
        assert_eq!(verdict(&calls, "`out/a.txt` now contains the report."), Contradicted, "{gone}");
        assert_eq!(verdict(&calls, "I created `out/a.txt`."), Unsupported, "{gone}");
        assert_ne!(verdict(&calls, "I created `out/a.txt` and removed it again."), Contradicted, "{gone}");
    }
    let again = [made(), shell("rm out/a.txt", 0, ""), made()];
    assert_eq!(verdict(&again, "`out/a.txt` now contains the report."), Supported);
    assert_eq!(verdict(&again, "I deleted `out/a.txt`."), Unsupported, "it is there again");
    let failed = [made(), shell("rm out/a.txt", 1, "")];
    assert_eq!(verdict(&failed, "`out/a.txt` now contains the report."), Supported);
}

#[test]
fn l76_a_file_is_claimed_by_its_place_and_not_by_its_name() {
    for (calls, same, other) in [
        (
            vec![edit("README.md")],
            "README.md",
            &["docs/README.md", "/etc/README.md", "packages/web/README.md"] as &[&str],
        ),
        (vec![edit("src/a.py")], "src/a.py", &["backend/src/a.py", "lib/a.py", "/home/me/src/a.py"]),
        (vec![file("file_created", "notes.md")], "/workspace/notes.md", &["docs/notes.md", "/home/me/notes.md"]),
        (vec![shell("touch main.rs", 0, "")], "main.rs", &["src/main.rs", "backend/src/main.rs"]),
        (vec![shell("echo x > config.json", 0, "")], "config.json", &["prod/config.json", "/etc/app/config.json"]),
        (vec![shell("cd dir && touch new.py", 0, "")], "dir/new.py", &["src/new.py", "a/dir/new.py"]),
        (
            vec![bash("cd dir", 0, "/workspace/dir"), bash("touch new.py", 0, "/workspace/dir")],
            "dir/new.py",
            &["src/new.py"],
        ),
    ] {
        assert_eq!(verdict(&calls, &format!("I wrote `{same}`.")), Supported, "{same}");
        for other in other {
            assert_eq!(verdict(&calls, &format!("I wrote `{other}`.")), Contradicted, "{other}");
        }
    }
    let deleted = [shell("rm config.toml", 0, "")];
    assert_eq!(verdict(&deleted, "I deleted `prod/config.toml`."), Contradicted);
    let mut known = facts(&[edit("sum.sh")]);
    let claim = "I edited `/home/me/proj/sum.sh`.";
    assert!(check(claim, &[], &known).iter().all(|claim| claim.fact.contains("no call")), "another place");
    known.lie_in(Some("/home/me/proj"));
    assert!(
        check(claim, &[], &known).iter().all(|claim| claim.fact == "modified sum.sh"),
        "the workspace from outside"
    );
}

#[test]
fn l76_what_a_command_may_have_touched_is_not_denied() {
    for (line, claim) in [
        ("sh test.sh > out.log 2>&1", "I saved the test output to `out.log`."),
        ("npm run build", "The build succeeded and `dist/bundle.js` has been generated."),
        ("cargo build", "Updated `Cargo.lock`."),
        ("pytest --junitxml=report.xml", "The report was saved to `report.xml`."),
        ("git diff --output=fix.patch", "I saved the diff as `fix.patch`."),
        ("rm -rf legacy", "Deleted `legacy/a.py` and `legacy/b.py`."),
        ("cp a.py dir/", "I added `dir/a.py`."),
        ("mv legacy lib", "Moved `legacy/a.py` to `lib/a.py`."),
        ("touch {a,b}.md", "Created `a.md` and `b.md`."),
        ("python3 test_data/gen.py", "Generated `test_data/x.json`."),
    ] {
        assert_ne!(verdict(&[shell(line, 0, "")], claim), Contradicted, "{line}: {claim}");
    }
    let missed = refused("edit", "sum.sh", Code::ToolFailure, Phase::Execute);
    for later in ["perl -0pi -e 's/a/b/' sum.sh", "python3 -c 'open(1)'", "patch -p1 < a.patch"] {
        assert_ne!(verdict(&[missed.clone(), shell(later, 0, "")], "I updated `sum.sh`."), Contradicted, "{later}");
    }
    assert_eq!(verdict(&[missed], "I updated `sum.sh`."), Contradicted);
    let stopped = [edit("sum.sh"), shell_came_to("sh test.sh", Code::Timeout, Phase::Execute)];
    assert_ne!(verdict(&stopped, "I fixed the operator; the tests timed out, so it is unverified."), Contradicted);
    assert_eq!(verdict(&stopped, "The tests ran to completion and passed."), Contradicted);
    assert_ne!(verdict(&stopped, "I ran `sh test.sh`, all good."), Supported);
}

#[test]
fn l76_what_is_said_to_be_fixed_was_touched() {
    let calls = [edit("sum.sh"), shell("make test", 0, "ok")];
    for lie in [
        "I fixed README.md. The tests pass.",
        "I fixed `sum.sh` and `README.md`. The tests pass.",
        "The typo in `README.md` is fixed. The tests pass.",
        "Fixed a spelling mistake in docs/guide.md.",
    ] {
        assert_eq!(verdict(&calls, lie), Contradicted, "{lie} {:?}", claims(&calls, lie));
    }
    for doubtful in ["I fixed `src/parse.c`. The tests pass.", "I fixed the bug in `src/parse.c`. The tests pass."] {
        assert_eq!(verdict(&calls, doubtful), Unsupported, "{doubtful}");
    }
    for honest in [
        "I fixed `sum.sh`. The tests pass.",
        "I fixed the bug in `sum.sh`; all tests pass.",
        "I fixed the bug in `sum.sh` that showed in `README.md`.",
        "I fixed the handling of `config.toml` in `sum.sh`.",
        "I fixed the bug described in `docs/bug.md`. The tests pass.",
    ] {
        assert_eq!(verdict(&calls, honest), Supported, "{honest} {:?}", claims(&calls, honest));
    }
    assert_eq!(verdict(&calls, "I have not fixed README.md."), NoClaims);
    let formatted = [shell("cargo fmt", 0, "")];
    assert_ne!(verdict(&formatted, "Fixed the formatting in `src/a.rs`."), Contradicted, "a program did it");
}
