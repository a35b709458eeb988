//! A command of a line that only looks needs no rule beside one that is allowed; whatever makes that uncertain asks as before.

use serde_json::json;

use crate::arena::{Arena, EVERYBODY, Who};
use crate::common::Ran;

const MAKE: &str = "[[rules]]\naction = \"bash\"\nargv = [\"make\"]\neffect = \"allow\"\n";

fn arena(who: Who) -> Arena {
    let arena = Arena::of(who);
    arena.configure(MAKE);
    for name in ["Makefile", "src/Makefile"] {
        arena.write(&format!("work/{name}"), "all:\n\t@echo made\n");
    }
    arena.write("work/notes.txt", "note\n");
    arena.write("work/.env", "CANARY-7391\n");
    arena
}

fn bash(arena: &Arena, line: &str) -> Ran {
    arena.run(&["--profile", "code", "call", "bash", &json!({ "command": line }).to_string()])
}

#[test]
fn an_allowed_command_runs_with_what_only_looks_beside_it() {
    for who in EVERYBODY {
        let arena = arena(who);
        for line in [
            "make 2>&1 | tail -5",
            "make && echo ok",
            "make; ls",
            "make | grep -i made | wc -l",
            "make 2>/dev/null && cat notes.txt",
            "cat notes.txt && make",
            "make && grep -n 'no.*e' notes.txt",
            "pwd; make",
            // The last one, for the shell stays there.
            "cd src && make | head -n 3",
        ] {
            bash(&arena, line).ends(0);
        }
        // The control: without the rule each of them is asked about.
        arena.configure("");
        bash(&arena, "make 2>&1 | tail -5").ends(3);
    }
}

#[test]
fn what_is_not_certain_to_only_look_is_asked_about() {
    for who in EVERYBODY {
        let arena = arena(who);
        arena.write("work/-oMakefile", "x\n");
        arena.write("work/asked/x", "asked\n");
        for line in [
            "make; tail -5 $x",
            "make; sort *",
            "make; tail -5 > out",
            "make > out; tail -5 notes.txt",
            "make; cat .env",
            "make; cat ./.env notes.txt",
            "make; cat /etc/passwd",
            "make; cat ../outside",
            "make; cat not-there-yet",
            "make; find . -delete",
            "make; find . -exec rm {} +",
            "make; sort -o Makefile notes.txt",
            "make; sed -i s/a/b/ notes.txt",
            "make; sed w/x notes.txt",
            "make; ./ls",
            "ls() { touch ran; }; make; ls",
            "alias ls='touch ran'; make; ls",
            "PATH=.; make; ls",
            "export PATH=$PWD; make; ls",
            "hash -p ./evil ls; make; ls",
            "make; git -c core.pager=x log",
            "make; env ls",
            "make; ls; curl x",
            "make; ls & rm x",
            "make; $(ls)",
            "make; echo `ls`",
            "make; awk 'BEGIN{system(\"x\")}' notes.txt",
            "make; tail -f notes.txt",
            "cd /etc && make",
            "cd $x && make",
            "cd - && make",
            "cd src && ls",
            "make; eval ls",
            "make; cat < notes.txt | sh",
        ] {
            bash(&arena, line).ends(3);
        }
        // Rules about the part, or about what it reads, hold.
        let also = |rule: &str| arena.configure(&format!("{MAKE}[[rules]]\n{rule}\n"));
        also("action = \"*\"\nargv = [\"tail\"]\neffect = \"deny\"");
        bash(&arena, "make 2>&1 | tail -5").ends(4).warns("policy_denied");
        bash(&arena, "make 2>&1 | head -5").ends(0);
        also("action = \"*\"\nargv = [\"ls\"]\neffect = \"ask\"");
        bash(&arena, "make; ls").ends(3);
        also("action = \"read\"\npath = \"/workspace/asked/**\"\neffect = \"ask\"");
        bash(&arena, "make; cat asked/x").ends(3);
        bash(&arena, "make; cat notes.txt").ends(3);
        bash(&arena, "make; pwd").ends(0);
        also("action = \"read\"\npath = \"/workspace/asked/**\"\neffect = \"deny\"");
        bash(&arena, "make; cat asked/x").ends(3);
        bash(&arena, "make; cat notes.txt").ends(0);
    }
}
