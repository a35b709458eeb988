//! Values that look like a key of any issuer: an issuer's prefix and enough characters that vary, or a private key
//! block. They stand in files of a workspace, where nobody declared them as a secret.
//!
//! The search works on a stream: it says from which byte on it cannot decide yet. That is the beginning of a prefix or of
//! a value at the very end, so live output is held back by a token at most, and by a key block while one is open.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// What may follow the prefix.
enum Body {
    /// Three runs with a dot between each two, the second of which begins as the first does: a JSON web token.
    Jwt,
    /// A run of characters.
    Run(Run),
    /// A name in any letter case, up to [`SEPARATORS`] characters such as `": "`, and then a run. The value alone is masked.
    Named(Run),
    /// Lines up to the one that ends the block. Each of them is masked by itself, so that there are as many as before.
    Block(BlockEnding),
}

/// How the last line of a block begins, and what ends that line.
#[derive(Clone, Copy)]
enum BlockEnding {
    /// `-----END …-----`
    Dashes,
    /// `Private-MAC: …` of a key file of PuTTY.
    Mac,
}

/// From `least` to `most` characters that are `of` one kind. Of a longer run `most` are masked; where both numbers are
/// equal, a longer run is another thing.
#[derive(Clone, Copy)]
struct Run {
    of: fn(u8) -> bool,
    least: usize,
    most: usize,
}

struct Shape {
    label: &'static str,
    starts: &'static [&'static str],
    body: Body,
}

impl Shape {
    /// Whether `text` is this prefix, or this beginning of it.
    fn is_start(&self, text: &[u8], prefix: &str) -> bool {
        match self.body {
            Body::Named(_) => text.eq_ignore_ascii_case(prefix.as_bytes()),
            Body::Run(_) | Body::Jwt | Body::Block(_) => text == prefix.as_bytes(),
        }
    }
}

/// Characters between the name of a value and the value: columns are lined up with spaces.
const SEPARATORS: usize = 64;
/// A token of an issuer is shorter; what is longer is data.
const TOKEN_MAX: usize = 4 << 10;
/// An RSA key of 16,384 bits takes 13 KB.
const BLOCK_MAX: usize = 16 << 10;
/// Bytes of a key block that is worth masking: shorter ones are examples in documents.
const BLOCK_MIN: usize = 64;
/// Characters of the parts of a JSON web token: `{"alg":"none"}` takes 19, a signature 43 and more.
const OBJECT_MIN: usize = 12;
const SIGNATURE_MIN: usize = 20;
const EXAMPLE: &[u8] = b"example";
/// Different characters in a real value. `xxxxxxxxxxxxxxxxxxxx` is an example in a document.
const VARIED: usize = 8;

fn alnum(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}
fn word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}
fn dashed(b: u8) -> bool {
    word(b) || b == b'-'
}
fn dotted(b: u8) -> bool {
    dashed(b) || b == b'.'
}
fn upper(b: u8) -> bool {
    b.is_ascii_uppercase() || b.is_ascii_digit()
}
fn base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}

fn base64_url(b: u8) -> bool {
    base64(b) || dashed(b)
}

const fn run(
    label: &'static str,
    starts: &'static [&'static str],
    of: fn(u8) -> bool,
    least: usize,
    most: usize,
) -> Shape {
    Shape { label, starts, body: Body::Run(Run { of, least, most }) }
}

/// The shapes. Of two prefixes that begin alike the longer stands first.
static SHAPES: &[Shape] = &[
    run("aws key", &["AKIA", "ASIA", "ABIA", "ACCA"], upper, 16, 16),
    Shape {
        label: "aws secret key",
        starts: &[
            "secret_access_key",
            "secret-access-key",
            "secretaccesskey",
            "aws_secret_key",
            "aws-secret-key",
            "awssecretkey",
            "aws_secret",
        ],
        body: Body::Named(Run { of: base64, least: 40, most: 40 }),
    },
    run("github token", &["github_pat_"], word, 22, TOKEN_MAX),
    run("github token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], word, 36, TOKEN_MAX),
    run("gitlab token", &["glpat-", "gldt-", "glrt-", "glptt-"], dotted, 20, TOKEN_MAX),
    run("anthropic key", &["sk-ant-"], dashed, 20, TOKEN_MAX),
    run("api key", &["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"], dashed, 20, TOKEN_MAX),
    run("api key", &["sk-"], alnum, 32, TOKEN_MAX),
    run("slack token", &["xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-", "xapp-"], dashed, 20, TOKEN_MAX),
    run("slack webhook", &["hooks.slack.com/services/"], |b| dashed(b) || b == b'/', 20, TOKEN_MAX),
    run("stripe key", &["sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"], base64, 16, TOKEN_MAX),
    run("google key", &["AIza"], dashed, 35, 35),
    run("google secret", &["GOCSPX-"], dashed, 28, TOKEN_MAX),
    run("google token", &["ya29."], dotted, 20, TOKEN_MAX),
    run("npm token", &["npm_"], alnum, 36, TOKEN_MAX),
    run("pypi token", &["pypi-AgE"], dashed, 50, TOKEN_MAX),
    run("hugging face token", &["hf_"], alnum, 30, TOKEN_MAX),
    run("docker token", &["dckr_pat_"], dashed, 24, TOKEN_MAX),
    run("digitalocean token", &["dop_v1_", "doo_v1_", "dor_v1_"], alnum, 64, TOKEN_MAX),
    run("vault token", &["hvs.", "hvb."], dashed, 24, TOKEN_MAX),
    run("sendgrid key", &["SG."], dotted, 66, TOKEN_MAX),
    run("age key", &["AGE-SECRET-KEY-1"], upper, 50, TOKEN_MAX),
    run("cargo registry token", &["cio"], alnum, 32, 32),
    run("databricks token", &["dapi"], |b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b), 32, 32),
    run("groq key", &["gsk_"], alnum, 40, TOKEN_MAX),
    run("xai key", &["xai-"], alnum, 60, TOKEN_MAX),
    run("replicate token", &["r8_"], alnum, 32, TOKEN_MAX),
    run("linear key", &["lin_api_"], alnum, 32, TOKEN_MAX),
    run("notion token", &["ntn_"], alnum, 40, TOKEN_MAX),
    run("notion token", &["secret_"], alnum, 43, 43),
    run("shopify token", &["shpat_", "shpss_", "shpca_", "shppa_"], |b| b.is_ascii_hexdigit(), 32, TOKEN_MAX),
    run("fly token", &["fm2_", "fm1r_", "fm1a_", "fo1_"], base64_url, 40, TOKEN_MAX),
    run("fly token", &["FlyV1 "], |b| base64_url(b) || b == b',', 40, TOKEN_MAX),
    run("supabase token", &["sbp_"], |b| b.is_ascii_hexdigit(), 40, TOKEN_MAX),
    run("supabase key", &["sb_secret_"], dashed, 20, TOKEN_MAX),
    run("doppler token", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."], dotted, 40, TOKEN_MAX),
    run("sentry token", &["sntrys_", "sntryu_"], base64_url, 60, TOKEN_MAX),
    run("atlassian token", &["ATATT3"], |b| dashed(b) || b == b'=', 60, TOKEN_MAX),
    run("perplexity key", &["pplx-"], alnum, 40, TOKEN_MAX),
    run("new relic key", &["NRAK-"], upper, 27, TOKEN_MAX),
    run("grafana token", &["glsa_", "glc_"], base64_url, 32, TOKEN_MAX),
    run("postman key", &["PMAK-"], dashed, 50, TOKEN_MAX),
    run("square token", &["sq0atp-", "sq0csp-"], dashed, 22, TOKEN_MAX),
    run("discord webhook", &["discord.com/api/webhooks/"], |b| dashed(b) || b == b'/', 60, TOKEN_MAX),
    Shape { label: "jwt", starts: &["eyJ"], body: Body::Jwt },
    Shape {
        label: "azure key",
        starts: &["accountkey", "account_key", "account-key", "sharedaccesskey", "shared_access_key"],
        body: Body::Named(Run { of: base64, least: 43, most: TOKEN_MAX }),
    },
    Shape {
        label: "private key",
        starts: &[
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----",
            "-----BEGIN EC PRIVATE KEY-----",
            "-----BEGIN DSA PRIVATE KEY-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----",
        ],
        body: Body::Block(BlockEnding::Dashes),
    },
    Shape {
        label: "private key",
        starts: &["PuTTY-User-Key-File-2: ", "PuTTY-User-Key-File-3: "],
        body: Body::Block(BlockEnding::Mac),
    },
];

static STARTS: LazyLock<Regex> = LazyLock::new(|| {
    let one = |shape: &Shape, start: &&str| match shape.body {
        Body::Named(_) => format!("(?i-u:{})", regex::escape(start)),
        Body::Run(_) | Body::Jwt | Body::Block(_) => regex::escape(start),
    };
    let all: Vec<String> =
        SHAPES.iter().flat_map(|shape| shape.starts.iter().map(move |start| one(shape, start))).collect();
    Regex::new(&all.join("|")).expect("escaped literals are an expression")
});

/// Where a value stands in the text.
pub(crate) struct Value {
    /// The first byte that says what it is: of its name where it has one, else its own.
    pub(crate) known_from: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) label: &'static str,
}

/// What the text after a known prefix turned out to be.
enum PrefixKind {
    Value {
        start: usize,
        end: usize,
    },
    Nothing,
    /// The text ends before it can be said.
    Open,
}

/// Whether there may be any.
pub(crate) fn any(text: &[u8]) -> bool {
    STARTS.is_match(text)
}

/// What a marker of this module says stands in its place, in order of the table.
pub(crate) fn labels() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.label)
}

/// The values in `text` by start, overlapping ones too, and the first byte that is not decided: the length of the text
/// where it has `ended`. `before` is the byte ahead of the text.
pub(crate) fn values(text: &[u8], before: Option<u8>, ended: bool) -> (Vec<Value>, usize) {
    let mut found = Vec::new();
    let mut undecided = if ended { text.len() } else { text.len() - begun(text) };
    let mut at = 0;
    while let Some(start) = STARTS.find_at(text, at).map(|found| found.start()) {
        let ahead = start.checked_sub(1).map(|place| text[place]).or(before);
        at = start + 1;
        for (shape, prefix) in starting(&text[start..]) {
            match judge(shape, text, start, prefix, ahead, ended) {
                PrefixKind::Value { start: value, end } if matches!(shape.body, Body::Block(_)) => {
                    let line = |(start_of, end_of)| Value {
                        known_from: start,
                        start: start_of,
                        end: end_of,
                        label: shape.label,
                    };
                    found.extend(lines(text, value, end).map(line));
                }
                PrefixKind::Value { start: value, end } => {
                    found.push(Value { known_from: start, start: value, end, label: shape.label });
                }
                PrefixKind::Open => undecided = undecided.min(start),
                PrefixKind::Nothing => continue,
            }
            break;
        }
    }
    found.sort_by_key(|value| (value.start, value.end));
    (found, undecided)
}

/// What is written in each line of a part of `text`, without the white space around it.
fn lines(text: &[u8], start: usize, end: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = start;
    text[start..end].split_inclusive(|b| *b == b'\n').filter_map(move |line| {
        let begin = at + line.len() - line.trim_ascii_start().len();
        let written = line.trim_ascii().len();
        at += line.len();
        (written > 0).then_some((begin, begin + written))
    })
}

/// How many bytes at the end of `text` may be the beginning of a prefix.
pub(crate) fn begun(text: &[u8]) -> usize {
    let longest = SHAPES.iter().flat_map(|shape| shape.starts).map(|start| start.len()).max().unwrap_or(0);
    let part = |len: &usize| {
        let end = &text[text.len() - len..];
        let begins =
            |shape: &Shape| shape.starts.iter().any(|start| start.len() > *len && shape.is_start(end, &start[..*len]));
        SHAPES.iter().any(begins)
    };
    (1..longest.min(text.len() + 1)).rev().find(part).unwrap_or(0)
}

/// The shapes whose prefix stands at the start of `text`, each with the length of that prefix.
fn starting(text: &[u8]) -> impl Iterator<Item = (&'static Shape, usize)> {
    SHAPES.iter().filter_map(move |shape| {
        let begins = |start: &&&str| text.get(..start.len()).is_some_and(|there| shape.is_start(there, start));
        let start = shape.starts.iter().find(begins)?;
        Some((shape, start.len()))
    })
}

fn judge(shape: &Shape, text: &[u8], start: usize, prefix: usize, ahead: Option<u8>, ended: bool) -> PrefixKind {
    let body = start + prefix;
    match shape.body {
        // Inside a longer word it is by chance. A dash or an underscore ends a word: `my-ghp_…`, `x_ghp_…`.
        Body::Run(_) | Body::Jwt if ahead.is_some_and(alnum) => PrefixKind::Nothing,
        Body::Jwt => jwt(text, start, ended),
        Body::Run(run) => value(text, start, body, run, ended),
        Body::Named(run) => {
            let separators =
                text[body..].iter().take(SEPARATORS).take_while(|b| b" \t\r\n=:>,([{\"'\\".contains(b)).count();
            let value_at = body + separators;
            match separators {
                _ if value_at == text.len() && !ended => PrefixKind::Open,
                0 => PrefixKind::Nothing,
                _ => value(text, value_at, value_at, run, ended),
            }
        }
        Body::Block(BlockEnding::Dashes) => block(text, start, body, ended),
        Body::Block(BlockEnding::Mac) => putty(text, start, body, ended),
    }
}

/// A run at `body`, masked from `start` on.
fn value(text: &[u8], start: usize, body: usize, run: Run, ended: bool) -> PrefixKind {
    let len = text[body..].iter().take(run.most + 1).take_while(|b| (run.of)(**b)).count();
    if body + len == text.len() && len <= run.most && !ended {
        return PrefixKind::Open;
    }
    let written = &text[body..body + len];
    if len < run.least || (run.least == run.most && len > run.most) || !varied(written) || is_example(written, run) {
        return PrefixKind::Nothing;
    }
    PrefixKind::Value { start, end: body + len.min(run.most) }
}

fn varied(value: &[u8]) -> bool {
    let mut seen = [false; 256];
    value.iter().for_each(|b| seen[usize::from(*b)] = true);
    seen.iter().filter(|seen| **seen).count() >= VARIED
}

/// A JSON web token: header, claims and signature.
fn jwt(text: &[u8], start: usize, ended: bool) -> PrefixKind {
    let mut at = start;
    for part in 0..3 {
        let len = text[at..].iter().take(TOKEN_MAX + 1).take_while(|b| dashed(**b)).count();
        let part_of = &text[at..at + len];
        let object = b"eyJ";
        let begins =
            part == 2 || part_of.starts_with(object) || (part_of.len() < object.len() && object.starts_with(part_of));
        at += len;
        if len > TOKEN_MAX || !begins {
            return PrefixKind::Nothing;
        }
        if at == text.len() && !ended {
            return PrefixKind::Open;
        }
        let long_enough = len >= if part == 2 { SIGNATURE_MIN } else { OBJECT_MIN };
        if !long_enough || (part < 2 && text.get(at) != Some(&b'.')) {
            return PrefixKind::Nothing;
        }
        at += usize::from(part < 2);
    }
    if varied(&text[at - SIGNATURE_MIN..at]) { PrefixKind::Value { start, end: at } } else { PrefixKind::Nothing }
}

/// Whether a value says of itself that it is an example, as those of documents do. Not what stands behind a whole value.
fn is_example(value: &[u8], run: Run) -> bool {
    let own = &value[..value.len().min(run.least)];
    own.windows(EXAMPLE.len()).any(|part| part.eq_ignore_ascii_case(EXAMPLE))
}

/// A key block: to the end of its last line, or as far as it looks like one where that line is missing.
fn block(text: &[u8], start: usize, body: usize, ended: bool) -> PrefixKind {
    let inside = &text[body..text.len().min(body + BLOCK_MAX)];
    let find =
        |from: usize, what: &[u8]| inside[from..].windows(what.len()).position(|w| w == what).map(|at| from + at);
    let closing = find(0, b"-----END ");
    let end = closing.and_then(|at| find(at + b"-----END ".len(), b"-----"));
    if end.is_none() && inside.len() < BLOCK_MAX && !ended {
        return PrefixKind::Open;
    }
    let len = match end {
        Some(at) => at + b"-----".len(),
        None => inside.iter().take_while(|b| base64(**b) || b.is_ascii_whitespace() || **b == b'\\').count(),
    };
    let written = &inside[..closing.unwrap_or(len)];
    if written.len() < BLOCK_MIN || !varied(written) {
        return PrefixKind::Nothing;
    }
    PrefixKind::Value { start, end: body + len }
}

/// A key file of PuTTY: to the end of its last line. Without that line it ends behind the lines of the private part.
fn putty(text: &[u8], start: usize, body: usize, ended: bool) -> PrefixKind {
    let inside = &text[body..text.len().min(body + BLOCK_MAX)];
    let find = |what: &[u8]| inside.windows(what.len()).position(|part| part == what).map(|at| at + what.len());
    let run = |from: usize, of: fn(u8) -> bool| from + inside[from..].iter().take_while(|b| of(**b)).count();
    let end = find(b"Private-MAC: ").map(|at| run(at, |b| b.is_ascii_hexdigit()));
    if end.is_none_or(|end| end == inside.len()) && inside.len() < BLOCK_MAX && !ended {
        return PrefixKind::Open;
    }
    let end = end.or_else(|| find(b"Private-Lines: ").map(|at| run(at, |b| base64(b) || b.is_ascii_whitespace())));
    match end {
        Some(len) if len >= BLOCK_MIN && varied(&inside[..len]) => PrefixKind::Value { start, end: body + len },
        _ => PrefixKind::Nothing,
    }
}
