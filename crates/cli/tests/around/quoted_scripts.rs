//! The script that an ask quotes is the one that runs. Each line runs another script than a careless reader would quote:
//! the ask must quote what runs, or say that it is not known before it runs.

use serde_json::json;

use crate::arena::{Arena, EVERYBODY};

/// The word that scripts hold which a careless reader would quote.
const SHOWN: &str = "echo SHOWN";

const MAKEFILES: [(&str, &str); 12] = [
    ("goal", ".DEFAULT_GOAL := evil\nall:\n\t@echo SHOWN\nevil:\n\t@touch ran\n"),
    ("twice", "all:\n\t@echo SHOWN\n\nall:\n\t@touch ran\n"),
    ("included", "include more\nall:\n\t@echo SHOWN\n"),
    ("needed", "# all:\nx = y:z\nall: pre\n\t@echo SHOWN\npre:\n\t@touch ran\n"),
    ("condition", "ifdef NEVER\nall:\n\t@echo SHOWN\nelse\nall:\n\t@touch ran\nendif\n"),
    ("defined", "define all:\nendef\nall:;@touch ran\n\t@echo SHOWN\n"),
    ("continued", "all: \\\n x\n\t@echo SHOWN\nx: ; @touch ran\n"),
    ("evaluated", "$(eval all: ; touch ran)\nother:\n\t@echo SHOWN\n"),
    ("pattern", "all: x.made\n\t@echo SHOWN\n%.made:\n\t@touch ran\n"),
    ("fallback", ".DEFAULT:\n\t@touch ran\nall: x\n\t@echo SHOWN\n"),
    ("prefixed", ".RECIPEPREFIX = >\nall: ; @echo SHOWN\n> @touch ran\n"),
    ("two_colons", "all::\n\t@echo SHOWN\nall::\n\t@touch ran\n"),
];

const LINES: [&str; 30] = [
    "npm --tag test run evil",
    "npm --otp test run evil",
    "npm --cache test run evil",
    "npm --registry test run evil",
    "npm --userconfig test run evil",
    "npm --location test run evil",
    "npm --script-shell test run evil",
    "npm run -- evil",
    "npm -- run evil",
    "npm run --silent evil",
    "npm --if-present run evil",
    "npm --unheard test run evil",
    "npm --json false run evil",
    "npm ru evil",
    "npm --prefix=. --prefix=sub test",
    "npm_config_workspace=sub npm test",
    "env npm_config_prefix=sub npm test",
    "make .DEFAULT_GOAL=evil",
    "make -E .DEFAULT_GOAL=evil",
    "make --eval=.DEFAULT_GOAL=evil",
    "make --eval .DEFAULT_GOAL:=evil",
    "make -- evil",
    "make --jobs 2 evil",
    "make --shuffle evil",
    "make --old-file all evil",
    "make -O evil",
    "MAKEFLAGS=-Csub make",
    "GNUMAKEFLAGS=-Csub make",
    "MAKEFILES=sub/Makefile make",
    "make -Csub",
];

fn prepare(arena: &Arena) {
    let package =
        |evil: &str| json!({"name": "a", "version": "1.0.0", "scripts": {"test": SHOWN, "evil": evil}}).to_string();
    arena.write("work/package.json", &package("touch /workspace/ran"));
    arena.write("work/sub/package.json", &package("").replace(SHOWN, "touch /workspace/ran"));
    arena.write("work/Makefile", "all:\n\t@echo SHOWN\nevil:\n\t@touch /workspace/ran\n");
    arena.write("work/sub/Makefile", "all:\n\t@touch /workspace/ran\n");
    for (folder, makefile) in MAKEFILES {
        arena.write(&format!("work/{folder}/Makefile"), &makefile.replace(" ran", " /workspace/ran"));
        arena.write(&format!("work/{folder}/more"), "evil:\n\t@touch /workspace/ran\n");
    }
}

#[test]
fn what_runs_is_quoted_or_said_to_be_unknown() {
    let arena = Arena::of(EVERYBODY[1]);
    prepare(&arena);
    let in_folders = MAKEFILES.map(|(folder, _)| format!("make -C {folder}"));
    for line in LINES.map(str::to_owned).into_iter().chain(in_folders) {
        let input = json!({ "command": line }).to_string();
        let ask = arena.run(&["call", "shell_run", &input]).ends(3).id("ask_");
        let shown = arena.run(&["approvals", "show", &ask]).ends(0).out;
        let quoted = shown.lines().any(|text| text.contains("touch /workspace/ran"));
        assert!(quoted || shown.contains("not known before it runs"), "{line}: {shown}");
    }
    // The control: where nothing is hidden the script is quoted.
    for line in ["npm test", "npm run test", "make", "make all"] {
        let input = json!({ "command": line }).to_string();
        let ask = arena.run(&["call", "shell_run", &input]).ends(3).id("ask_");
        let shown = arena.run(&["approvals", "show", &ask]).ends(0).says("echo SHOWN").out;
        assert!(!shown.contains("not known before it runs"), "{line}: {shown}");
    }
}

/// The attacks are real: each makefile runs what a careless reader would not quote.
#[test]
fn the_makefiles_run_what_they_hide() {
    let arena = Arena::of(EVERYBODY[1]);
    prepare(&arena);
    for (folder, _) in MAKEFILES {
        arena.run(&[
            "--approvals",
            "allow",
            "call",
            "shell_run",
            &json!({"command": format!("make -C {folder}")}).to_string(),
        ]);
        assert!(arena.exists("work/ran"), "{folder}");
        std::fs::remove_file(arena.path("work/ran")).expect("removed");
    }
}

#[test]
fn a_script_whose_name_is_unclear_is_bound_all_the_same() {
    for line in [
        "npm run -- evil",
        "npm -- run evil",
        "npm --tag test run evil",
        "npm --unheard test run evil",
        "make --eval=x:",
    ] {
        let arena = Arena::of(EVERYBODY[1]);
        prepare(&arena);
        let input = json!({ "command": line }).to_string();
        let ask = arena.run(&["call", "shell_run", &input]).ends(3).id("ask_");
        arena.write("work/package.json", r#"{"name": "a", "version": "1.0.0", "scripts": {"evil": "touch other"}}"#);
        arena.write("work/Makefile", "all:\n\ttouch other\n");
        arena.run(&["approvals", "allow", &ask]).ends(1).warns("is another one than when this was asked");
        assert!(!arena.exists("work/other"), "{line}");
    }
}
