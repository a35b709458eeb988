//! Files that a command writes because an option names them as its output, and files that come out of an archive.
//!
//! Which option that is hardly differs between programs, so the same ones are looked for with all of them.

use std::borrow::Cow;

use super::option_reader::{OptionReader, ReadWord, ValuedOptions};
use super::unwrap::base;

/// Programs whose output is built from files that stand there: what comes out is not the text that they are given.
const BUILDERS: &str = "gcc g++ cc c++ clang clang++ rustc go ghc tcc gfortran ld as nasm zig javac kotlinc swiftc scalac \
    dmd ldc2 nim crystal ocamlopt ocamlfind dart esbuild tsc swc rollup webpack parcel vite babel bun deno cargo make \
    gmake ninja cmake meson npm npx pnpm yarn docker podman";

/// Programs that unpack an archive, and those that put one file in the place of a packed one.
const UNPACKERS: &str = "tar gtar bsdtar cpio pax unzip 7z 7za 7zr unrar ar uudecode unshar jar";
const DECOMPRESSORS: &str =
    "gunzip gzip pigz unxz xz bunzip2 bzip2 unzstd zstd unlzma lzma lzip lz4 unlz4 uncompress brotli";

/// Programs that fetch a file and keep its name.
const FETCHERS: &str =
    "scp sftp rsync aria2c axel http https xh wget2 aws gsutil gcloud az s5cmd rclone mc gh glab hf lftp";

fn holds(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

/// Whether the program unpacks an archive: what comes out may have any name.
pub(super) fn unpacks(name: &str, words: &[String]) -> bool {
    let packs = || {
        let letters = words.first().map_or("", String::as_str).trim_start_matches('-');
        let long = words.iter().any(|word| matches!(word.as_str(), "--create" | "--list" | "--append" | "--test"));
        long || letters.starts_with(['c', 't', 'r', 'u', 'o', 'p', 'a', 'l', 'q'])
    };
    holds(UNPACKERS, name) && (matches!(name, "unzip" | "uudecode" | "unshar" | "pax") || !packs())
}

/// What the words of a program name as its output.
pub(super) fn named<'w>(name: &str, words: &'w [String]) -> Vec<Cow<'w, str>> {
    let mut out: Vec<Cow<'w, str>> = Vec::new();
    if !holds(BUILDERS, name) {
        let outputs = words.iter().enumerate().filter_map(|(at, word)| written(word, words.get(at + 1)));
        out.extend(outputs.map(Cow::from));
    }
    let operands = || {
        let all = OptionReader::new(words, ValuedOptions { letters: "", long: &[] });
        all.filter_map(|word| if let ReadWord::Operand(word) = word { Some(word) } else { None })
    };
    if holds(DECOMPRESSORS, name) {
        out.extend(operands().filter_map(|packed| packed.rsplit_once('.')).map(|(plain, _)| plain.into()));
    }
    if holds(FETCHERS, name) {
        // The last one of several is where it goes to.
        let sources = operands().count().saturating_sub(1).max(1);
        out.extend(
            operands().take(sources).filter_map(|from| from.rsplit_once([':', '/'])).map(|(_, file)| file.into()),
        );
    }
    if name == "unzip" {
        out.extend(operands().skip(1).map(|file| base(file).into()));
    }
    if holds("yq gojq", name) && words.iter().any(|word| matches!(word.as_str(), "-i" | "--inplace" | "--in-place")) {
        out.extend(operands().map(Cow::from));
    }
    // Into a folder: under its own name.
    let into = |word: &String| word.starts_with("-t") || word.starts_with("--target-directory");
    let copies = holds("cp gcp mv gmv install ginstall ln gln", name);
    let several = operands().count() > 2 || operands().last().is_some_and(|last| last.ends_with(['/', '.']));
    if copies && (several || words.iter().any(into)) {
        out.extend(operands().map(|file| base(file).into()));
    }
    out
}

/// Whether `form` is a tail of the words of `whole` that begins with the value of such an option, and so no command of its
/// own: `strace -o log make` does not run `log`.
pub(super) fn is_value(whole: &[String], form: &[String]) -> bool {
    let Some(before) = whole.len().checked_sub(form.len() + 1).filter(|_| whole.ends_with(form)) else { return false };
    form.first().is_some_and(|file| written(&whole[before], Some(file)) == Some(file.as_str()))
}

/// The file that a word names as output, with the next word as its value.
fn written<'w>(word: &'w str, next: Option<&'w String>) -> Option<&'w str> {
    if let Some(file) = word.strip_prefix("of=") {
        return Some(file);
    }
    let next = next.map(String::as_str);
    let option = word.strip_prefix('-')?;
    let long = option.strip_prefix('-').unwrap_or(option);
    let (given, value) = long.split_once('=').map_or((long, None), |(given, value)| (given, Some(value)));
    let outputs = |name: &str| name.starts_with("out") || name.ends_with("-output") || name.ends_with("-out");
    if option.len() > 1 && (outputs(given) || matches!(given, "to-file" | "tee" | "dest" | "destination")) {
        return value.or(next);
    }
    // `-o x`, `-ox`
    let attached = option.strip_prefix(['o', 'O'])?;
    let file = if attached.is_empty() { next? } else { attached.trim_start_matches('=') };
    // `-o jsonpath='{.items}'`
    (!file.contains('{')).then_some(file)
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    /// Each is a text that nobody reads, which a program puts into `s.sh` or `s`.
    const WRITERS: &[&str] = &[
        "unzip x.zip s.sh",
        "iconv -o s.sh x",
        "iconv -os.sh x",
        "iconv --output=s.sh x",
        "iconv --output s.sh x",
        "iconv -c -f utf16 -t utf8 -o sub/s.sh x",
        "openssl enc -d -base64 -out s.sh <<< eA==",
        "gpg -d --output s.sh x",
        "pandoc -t plain -o s.sh x.md",
        "pandoc --output=s.sh x.md",
        "xmllint --output s.sh x.xml",
        "xsltproc -o s.sh a.xsl b.xml",
        "jq --output-file s.sh . x",
        "git archive -o s.sh HEAD",
        "zstd -d x.zst -o s.sh",
        "psql -o s.sh -c 'select 1'",
        "mysql --tee=s.sh -e 'select 1'",
        "strace -o s.sh ls",
        "ltrace --output s.sh ls",
        "/usr/bin/time --output=s.sh ls",
        "sort y -os.sh",
        "protoc -os.sh x",
        "flex --outfile=s.sh x",
        "bison -o s.sh x",
        "dd if=y of=s.sh",
        "aria2c -o s.sh http://localhost/x",
        "http --download -o s.sh http://localhost/x",
        "wget --output-document s.sh http://localhost",
        "gh release download -O s.sh",
        "sudo iconv -o s.sh x",
        "bash -c 'iconv -o s.sh x'",
        "frobnicate -o s.sh x",
        "frobnicate --out=s.sh x",
        // Other names than the option's.
        "gunzip s.sh.gz",
        "xz -dk s.sh.xz",
        "bzip2 -d s.sh.bz2",
        "zstd -dq s.sh.zst",
        "cp a/s.sh sub/",
        "cp a/s.sh -t sub",
        "cp -t sub a/s.sh",
        "mv a/s.sh b/x .",
        "scp -q a:s.sh .",
        "rsync host:d/s.sh .",
        "aws s3 cp s3://b/s.sh .",
        "rclone copy r:d/s.sh .",
        "yq -i .a=1 s.sh",
        "base64 -d <<< H4sI | tar xz",
        "base64 -d <<< H4sI | cpio -i",
        "curl -s http://localhost/x | tar -xz",
        "curl -o x.zip http://localhost/x; unzip x.zip",
        "printf x > x.tar; tar -xf x.tar",
    ];

    #[test]
    fn l31_a_line_that_runs_what_a_program_writes_by_an_option_hides() {
        let lines = |run: &str| WRITERS.iter().map(move |writer| format!("{writer}; {run}")).collect::<Vec<_>>();
        for run in ["sh s.sh", ". ./s.sh", "bash -x sub/s.sh"] {
            let through: Vec<String> = lines(run).into_iter().filter(|line| !analyse(line).hides).collect();
            assert_eq!(through, Vec::<String>::new());
        }
        // The control: what runs is another file, and no archive brings it.
        let held: Vec<String> = lines("make").into_iter().filter(|line| analyse(line).hides).collect();
        assert_eq!(held, Vec::<String>::new());
    }

    #[test]
    fn l31_a_line_that_only_names_what_it_runs_or_builds_it_hides_nothing() {
        let lines = [
            "shellcheck s.sh && sh s.sh",
            "ls -lo s.sh; sh s.sh",
            "kubectl apply -o yaml -f - < x; sh s.sh",
            "cat s.sh; sh s.sh",
            "grep -o x s.sh && sh s.sh",
            "git add s.sh && git commit -m x && sh s.sh",
            "ruff format s.py && python3 s.py",
            "black s.py && python3 s.py",
            "npx prettier --write s.js && node s.js",
            "go build -o app . && ./app",
            "gcc a.c -o a && ./a",
            "tsc --outDir dist && node dist/x.js",
            "esbuild a.ts --outfile=x.js && node x.js",
            "cargo build && ./target/debug/x",
            "docker build -o out . && sh build.sh",
            "ssh -o A=b host true; sh build.sh",
            "tar xf data.tar && python3 x.py",
            "tar czf s.tgz src && sh s.sh",
            "unzip data.zip && python3 x.py",
            "gunzip data.csv.gz; python3 x.py",
            "cp config.json dist/ && node dist/index.js",
            "rsync -a src/ dst/ && sh deploy.sh",
            "strace -o s.log make && sh s.sh",
            "python3 x.py -o out.csv && python3 y.py",
            "pytest -o log_cli=true s.py",
        ];
        let held: Vec<&str> = lines.into_iter().filter(|line| analyse(line).hides).collect();
        assert_eq!(held, Vec::<&str>::new());
    }
}
