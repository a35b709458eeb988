//! Programs that never run a word of theirs as a command, or are looked through elsewhere in this module.
//!
//! For any other program every tail of its words may be what it runs (L32).

use super::runners::{ANY_TAIL, RUNNERS};
use super::shell::is_shell;
use super::{git, hidden, inline, marks, table, unwrap, verbs};

/// Of the system, of builds and of tests; and what a shell does itself.
const KNOWN: &str = "alembic ant apropos ar arch as autoconf automake autopep8 awk base32 base64 basename bc bg \
    biome bison black break bzip2 c++ cal cargo-clippy case cat cc cd chattr chgrp chmod chown \
    cksum clang clang++ clang-format clang-tidy clear cmake cmp code codespell column comm \
    continue convert cp cpio cppcheck csplit curl cut cypress date dd declare deluser df \
    diff diff3 dig dir dircolors dirname dirs disown django-admin dmesg dos2unix dot du echo \
    egrep esbuild eslint exa exit expand export expr eza factor false ffmpeg fg fgrep file \
    flake8 flex fmt fold free fuser fusermount g++ gawk gcc getconf getent getopts gfortran \
    gofmt golangci-lint gpg grep groups gunzip gzip head help hexdump history host hostname htop \
    httpie iconv id ifconfig import info install isort jest jobs join jq kill killall last ld \
    ldconfig ldd less let ln local locale locate logger login logname logout look ls lsattr \
    lsb_release lsblk lscpu lsof lspci lsusb lz4 lzma make man mawk md5sum mdformat mkdir \
    mkfifo mkfs mknod mktemp mocha more mount mountpoint mv mypy nano nawk ncu netstat ng nl nm \
    nmap node nodejs nproc nslookup objcopy objdump od openssl pandoc passwd paste patch \
    pathchk pgrep pidof ping pkg-config pkill playwright popd pr prettier printenv printf protoc \
    ps ptx pushd pwd pwdx pyflakes pylint pyright pytest python ranlib read readelf readlink \
    readonly realpath reboot renice reset return rev rg rm rmdir ruff rustc rustfmt scp \
    sdiff sed seq service set sha1sum sha224sum sha256sum sha384sum sha512sum shellcheck shfmt \
    shift shopt shred shuf shutdown size sleep sort split ss stat strings strip stty sum swc \
    sync sysctl tac tail tar tee test times top touch tput tr tree true truncate tsc tslint \
    tsort tty type typeset ulimit umask umount unalias uname unexpand uniq unix2dos unlink unrar \
    unset unxz unzip unzstd uptime users useradd userdel usermod vdir vite vitest vmstat vue-tsc \
    w wait wc webpack wget whatis whereis which who whoami xmllint xxd xz yamllint yapf yes yq \
    zcat zip zipinfo zstd [ [[ :";

/// Whether what the program does with its words is known, by the last name of its path.
#[must_use]
pub fn is_known(program: &str) -> bool {
    let name = unwrap::base(program);
    let family = verbs::family(name);
    KNOWN.split_ascii_whitespace().any(|known| known == family)
        || is_shell(name)
        || table::program_names().any(|known| known == name)
        || verbs::is_known(family)
        || ANY_TAIL.contains(&name)
        || RUNNERS.iter().any(|(names, _)| names.contains(&name))
        || hidden::is_interpreter(name)
        || inline::is_known(name)
        || unwrap::wraps(name)
}

/// What a program does with its words and with what it is given to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramReads {
    /// It shows, compares, searches or keeps them. What it runs by an option is found elsewhere in this crate.
    Text,
    /// It runs the command or the line in its words, which is one of the forms of the command. Of its own words only
    /// variables matter.
    Wraps,
    /// Its words are understood, but the value of an option or a line among them may be something that it runs.
    Values,
    /// Nobody knows.
    Anything,
}

/// Programs of `KNOWN` that run what they are given, by an option or by a variable.
const RUN_VALUES: &str = "make cmake node nodejs python convert gpg pandoc code man service export declare typeset \
    local readonly playwright cypress protoc";

/// Programs with verbs whose words are messages and names.
const TEXT_WITH_VERBS: &str = "find gfind gh glab hub systemctl loginctl hostnamectl brew svn hg";

/// What the program of a command does with its words.
#[must_use]
pub fn reads(argv: &[String]) -> ProgramReads {
    let Some(at) = argv.iter().position(|word| !unwrap::is_assignment(word)) else { return ProgramReads::Values };
    let (program, words) = (marks::bare(&argv[at]), &argv[at + 1..]);
    let name = unwrap::base(program);
    let family = verbs::family(name);
    let is = |list: &str| list.split_ascii_whitespace().any(|known| known == family);
    let interprets = hidden::is_interpreter(family) && !family.ends_with("awk");
    if !is_known(program) {
        ProgramReads::Anything
    } else if family == "git" && git::reads_text(words) {
        ProgramReads::Text
    } else if is(TEXT_WITH_VERBS) {
        // What is behind `--` goes to another program.
        if words.iter().any(|word| word == "--") { ProgramReads::Values } else { ProgramReads::Text }
    } else if unwrap::looks_through(name, words) {
        ProgramReads::Wraps
    } else if is(RUN_VALUES) || interprets || is_shell(name) {
        ProgramReads::Values
    } else if is(KNOWN) || table::program_names().any(|known| known == name) {
        ProgramReads::Text
    } else {
        ProgramReads::Values
    }
}
