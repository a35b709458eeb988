//! The programs of agent-runtime 8.7 with the options that are known to only read. Long names are
//! those of the listed letters; nothing else of a program is known.

use super::options::{NONE, Options, Value};
use super::plan::Builtin;

/// What the words are that are no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// There are none.
    None,
    /// At most so many words that name nothing in the tree.
    Words(usize),
    /// Any words; patterns over file names are allowed among them.
    Text,
    /// At most so many paths.
    Paths(usize),
    /// A pattern (unless an option gave it), then paths.
    PatternThenPaths,
    /// Has rules of its own.
    Own(SpecialProgram),
}

/// Programs whose words follow no common rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpecialProgram {
    Date,
    Echo,
    Printf,
    Seq,
    Find,
    Sed,
    Jq,
    Test,
    Cd,
    CommandV,
    Type,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) options: Options,
    pub(super) operands: Operands,
    pub(super) builtin: Option<Builtin>,
    /// It shows what is in files, and not only their names.
    pub(super) shows_content: bool,
    /// Without a path it looks at its working directory.
    pub(super) looks_around: bool,
}

const fn facts(name: &'static str) -> Program {
    Program { name, options: NONE, operands: Operands::None, builtin: None, shows_content: false, looks_around: false }
}

const fn built_in(name: &'static str, builtin: Builtin, operands: Operands) -> Program {
    Program { builtin: Some(builtin), operands, ..facts(name) }
}

const fn words(name: &'static str, operands: Operands, options: Options) -> Program {
    Program { operands, options, ..facts(name) }
}

/// Shows names and sizes.
const fn names(name: &'static str, looks_around: bool, options: Options) -> Program {
    Program { operands: Operands::Paths(MANY), options, looks_around, ..facts(name) }
}

/// Shows content.
const fn content(name: &'static str, most: usize, options: Options) -> Program {
    Program { operands: Operands::Paths(most), options, shows_content: true, ..facts(name) }
}

const fn own(name: &'static str, own: SpecialProgram, options: Options) -> Program {
    Program { operands: Operands::Own(own), options, ..facts(name) }
}

const fn opts(
    flags: &'static str,
    valued: &'static [(char, Value)],
    long: &'static [&'static str],
    long_valued: &'static [(&'static str, Value)],
) -> Options {
    Options { flags, valued, long, long_valued, number: false }
}

const fn flags(flags: &'static str) -> Options {
    opts(flags, &[], &[], &[])
}

/// No limit of its own; words of a line are counted elsewhere.
pub(super) const MANY: usize = usize::MAX;

const HEAD: Options = Options {
    number: true,
    ..opts("", &[('n', Value::Count), ('c', Value::Count)], &[], &[("lines", Value::Count), ("bytes", Value::Count)])
};

const GREP: Options = opts(
    "niFErRlLcwvohHsq",
    &[('e', Value::Text), ('A', Value::Number), ('B', Value::Number), ('C', Value::Number), ('m', Value::Number)],
    &[
        "line-number",
        "ignore-case",
        "fixed-strings",
        "extended-regexp",
        "recursive",
        "dereference-recursive",
        "files-with-matches",
        "files-without-match",
        "count",
        "word-regexp",
        "invert-match",
        "only-matching",
        "no-filename",
        "with-filename",
        "no-messages",
        "quiet",
        "silent",
    ],
    &[
        ("regexp", Value::Text),
        ("after-context", Value::Number),
        ("before-context", Value::Number),
        ("context", Value::Number),
        ("max-count", Value::Number),
        ("include", Value::Names),
        ("exclude", Value::Text),
    ],
);

// Not the letters of grep: to rg `-L` follows links, `-r` and `-E` take a value, `-R` is unknown.
const RG: Options = opts(
    "niFlcwvoHsqU",
    &[
        ('e', Value::Text),
        ('A', Value::Number),
        ('B', Value::Number),
        ('C', Value::Number),
        ('m', Value::Number),
        ('g', Value::Names),
        ('t', Value::Name),
    ],
    &[
        "line-number",
        "ignore-case",
        "fixed-strings",
        "files-with-matches",
        "count",
        "word-regexp",
        "invert-match",
        "only-matching",
        "with-filename",
        "case-sensitive",
        "quiet",
        "multiline",
        "files",
        "hidden",
    ],
    &[
        ("regexp", Value::Text),
        ("after-context", Value::Number),
        ("before-context", Value::Number),
        ("context", Value::Number),
        ("max-count", Value::Number),
        ("glob", Value::Names),
        ("type", Value::Name),
    ],
);

/// Sorted by name.
static PROGRAMS: [Program; 57] = [
    built_in("[", Builtin::Test, Operands::Own(SpecialProgram::Test)),
    facts("arch"),
    content("base64", 1, opts("d", &[('w', Value::Number)], &["decode"], &[("wrap", Value::Number)])),
    words("basename", Operands::Words(2), NONE),
    content("cat", MANY, opts("nAbs", &[], &["number", "show-all", "number-nonblank", "squeeze-blank"], &[])),
    built_in("cd", Builtin::Cd, Operands::Own(SpecialProgram::Cd)),
    content("cmp", 2, opts("sl", &[], &["silent", "quiet", "verbose"], &[])),
    content("comm", 2, flags("123")),
    built_in("command", Builtin::CommandV, Operands::Own(SpecialProgram::CommandV)),
    content(
        "cut",
        MANY,
        opts(
            "s",
            &[('d', Value::Text), ('f', Value::Ranges), ('c', Value::Ranges), ('b', Value::Ranges)],
            &["only-delimited"],
            &[
                ("delimiter", Value::Text),
                ("fields", Value::Ranges),
                ("characters", Value::Ranges),
                ("bytes", Value::Ranges),
            ],
        ),
    ),
    own("date", SpecialProgram::Date, opts("u", &[], &["utc", "universal"], &[])),
    names("df", true, opts("h", &[], &["human-readable"], &[])),
    content(
        "diff",
        2,
        opts("urqwb", &[], &["unified", "recursive", "brief", "ignore-all-space", "ignore-space-change"], &[]),
    ),
    words("dirname", Operands::Words(MANY), NONE),
    names(
        "du",
        true,
        opts("sha", &[('d', Value::Number)], &["summarize", "human-readable", "all"], &[("max-depth", Value::Number)]),
    ),
    own("echo", SpecialProgram::Echo, NONE),
    built_in("env", Builtin::Env, Operands::None),
    words("expr", Operands::Words(MANY), NONE),
    names("file", false, opts("bi", &[], &["brief", "mime"], &[])),
    own("find", SpecialProgram::Find, NONE),
    content("fold", MANY, opts("s", &[('w', Value::Number)], &["spaces"], &[("width", Value::Number)])),
    Program { shows_content: true, operands: Operands::PatternThenPaths, options: GREP, ..facts("grep") },
    content("head", MANY, HEAD),
    content("hexdump", MANY, opts("C", &[('n', Value::Number)], &["canonical"], &[("length", Value::Number)])),
    facts("id"),
    content("join", 2, NONE),
    Program {
        shows_content: true,
        ..own(
            "jq",
            SpecialProgram::Jq,
            opts("rcseM", &[], &["raw-output", "compact-output", "slurp", "exit-status", "monochrome-output"], &[]),
        )
    },
    names(
        "ls",
        true,
        opts("Aal1htrRd", &[], &["all", "almost-all", "human-readable", "reverse", "recursive", "directory"], &[]),
    ),
    content("md5sum", MANY, NONE),
    content("nl", MANY, NONE),
    facts("nproc"),
    words("numfmt", Operands::Words(MANY), opts("", &[], &[], &[("to", Value::Scale), ("from", Value::Scale)])),
    content(
        "od",
        MANY,
        opts(
            "cx",
            &[('A', Value::Name), ('t', Value::Name), ('N', Value::Number), ('j', Value::Number)],
            &[],
            &[
                ("address-radix", Value::Name),
                ("format", Value::Name),
                ("read-bytes", Value::Number),
                ("skip-bytes", Value::Number),
            ],
        ),
    ),
    own("printf", SpecialProgram::Printf, NONE),
    built_in("pwd", Builtin::Pwd, Operands::None),
    names("readlink", false, NONE),
    names("realpath", false, opts("m", &[], &["canonicalize-missing"], &[])),
    content("rev", MANY, NONE),
    Program {
        shows_content: true,
        operands: Operands::PatternThenPaths,
        options: RG,
        looks_around: true,
        ..facts("rg")
    },
    Program { shows_content: true, ..own("sed", SpecialProgram::Sed, NONE) },
    own("seq", SpecialProgram::Seq, NONE),
    content("sha256sum", MANY, NONE),
    content(
        "sort",
        MANY,
        opts(
            "urnfhV",
            &[('k', Value::Key), ('t', Value::Text)],
            &["unique", "reverse", "numeric-sort", "ignore-case", "human-numeric-sort", "version-sort"],
            &[("key", Value::Key), ("field-separator", Value::Text)],
        ),
    ),
    names("stat", false, opts("L", &[('c', Value::Format)], &["dereference"], &[("format", Value::Format)])),
    content("strings", MANY, NONE),
    content("tac", MANY, NONE),
    content("tail", MANY, HEAD),
    built_in("test", Builtin::Test, Operands::Own(SpecialProgram::Test)),
    words("tr", Operands::Words(2), opts("dsc", &[], &["delete", "squeeze-repeats", "complement"], &[])),
    names("tree", true, opts("ad", &[('L', Value::Number)], &[], &[])),
    built_in("true", Builtin::True, Operands::None),
    built_in("type", Builtin::Type, Operands::Own(SpecialProgram::Type)),
    words("uname", Operands::None, opts("amrs", &[], &["all", "machine", "kernel-release", "kernel-name"], &[])),
    // A second path would be written to.
    content("uniq", 1, opts("cdui", &[], &["count", "repeated", "unique", "ignore-case"], &[])),
    content("wc", MANY, opts("lwcm", &[], &["lines", "words", "bytes", "chars"], &[])),
    facts("whoami"),
    // A second path would be written to.
    content("xxd", 1, NONE),
];

/// The program of that name, if it is one of the table.
pub(super) fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.binary_search_by(|program| program.name.cmp(name)).ok().map(|at| &PROGRAMS[at])
}

/// Every name of the table, sorted.
pub fn program_names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|program| program.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_no_other_programs_than_the_specification() {
        assert!(PROGRAMS.is_sorted_by(|a, b| a.name < b.name));
        for name in [
            "awk", "xargs", "tar", "git", "sh", "bash", "python3", "less", "tee", "curl", "yes", "sleep", "shuf",
            "split",
        ] {
            assert!(program(name).is_none(), "{name}");
        }
    }
}
