//! SA-36 and L69: no shape of a known secret survives, and nothing else is touched.

use std::borrow::Cow;

use portcullis_secret::{MASK, MIN_REDACTED_BYTES, Redactor};
use proptest::prelude::*;
use serde_json::{Value, json};

fn redactor(secrets: &[&str]) -> Redactor {
    Redactor::new(secrets).expect("small secrets")
}

/// The oracle's base64, bit by bit, on purpose unlike the one under test.
fn base64(bytes: &[u8], url: bool, pad: bool) -> String {
    let letters: Vec<char> =
        ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(if url { ['-', '_'] } else { ['+', '/'] }).collect();
    let mut bits: Vec<bool> = bytes.iter().flat_map(|b| (0..8).rev().map(move |i| b >> i & 1 == 1)).collect();
    while !bits.len().is_multiple_of(6) {
        bits.push(false);
    }
    let mut out: String =
        bits.chunks(6).map(|six| letters[six.iter().fold(0, |n, bit| n * 2 + usize::from(*bit))]).collect();
    while pad && !out.len().is_multiple_of(4) {
        out.push('=');
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn url(bytes: &[u8], keep: &str, lower: bool) -> String {
    bytes
        .iter()
        .map(|b| match char::from(*b) {
            c if c.is_ascii_alphanumeric() || keep.contains(c) => c.to_string(),
            _ if lower => format!("%{b:02x}"),
            _ => format!("%{b:02X}"),
        })
        .collect()
}

/// Every shape SA-36 names, as programs write it.
fn shapes(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let mut out = vec![secret.to_owned(), hex(bytes), hex(bytes).to_uppercase()];
    for (alphabet, pad) in [(false, true), (false, false), (true, true), (true, false)] {
        out.push(base64(bytes, alphabet, pad));
    }
    for keep in ["-_.~", "-_.!~*'()", "*-._", "-_.~/", ""] {
        out.push(url(bytes, keep, true));
        out.push(url(bytes, keep, false));
        out.push(url(bytes, keep, false).replace("%20", "+"));
    }
    let quoted = serde_json::to_string(secret).expect("text");
    out.push(quoted[1..quoted.len() - 1].to_owned());
    out
}

/// Text that can be part of no shape, so that what surrounds a secret must come out unchanged.
fn surroundings() -> impl Strategy<Value = String> {
    "[ \n,;:<>|é]{0,12}"
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9+/=_.~ -]{6,24}", "[a-c]{6,9}", "\\PC{6,12}", "[a\"\\\\\né]{6,12}"]
        .prop_filter("a secret with spaces at its ends is also known without them", |s| s.trim_ascii() == s)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sa_036_every_shape_is_masked_and_nothing_else(
        secret in secret(), before in surroundings(), after in surroundings(),
    ) {
        let redactor = redactor(&[&secret]);
        for shape in shapes(&secret) {
            let text = format!("{before} {shape}\t{after}");
            prop_assert_eq!(redactor.redact_text(&text), format!("{before} {MASK}\t{after}"), "{}", shape);
        }
    }

    #[test]
    fn sa_036_base64_of_something_that_holds_the_secret_is_masked(
        secret in "[ -~]{6,20}",
        before in proptest::collection::vec(any::<u8>(), 0..7),
        after in proptest::collection::vec(any::<u8>(), 0..7),
        alphabet: bool, pad: bool,
    ) {
        prop_assume!(secret.trim_ascii() == secret);
        let whole = [&before, secret.as_bytes(), &after].concat();
        let text = base64(&whole, alphabet, pad);
        let masked = redactor(&[&secret]).redact_text(&text).into_owned();
        // Only characters without a bit of the secret remain.
        let (first, end) = (before.len() * 8 / 6, ((before.len() + secret.len()) * 8).div_ceil(6));
        let want = format!("{}{MASK}{}", &text[..first], text[end..].trim_start_matches('='));
        prop_assert_eq!(masked, want);
    }

    #[test]
    fn a_stream_masks_like_the_whole_however_it_is_cut(
        secrets in proptest::collection::vec("[ab]{6,9}|[ab ]{6,8}", 0..4),
        text in "[ab%621 YWJh=]{0,120}|[ab]{0,60}",
        planted in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
        cuts in proptest::collection::vec(1usize..9, 0..80),
    ) {
        let mut text = text;
        for (which, place) in planted {
            if secrets.is_empty() { break; }
            let shapes = shapes(&secrets[which.index(secrets.len())]);
            text.insert_str(place.index(text.len() + 1), &shapes[place.index(shapes.len())]);
        }
        let redactor = Redactor::new(&secrets).expect("small secrets");
        let longest = secrets.iter().map(|s| 3 * s.len() + 16).max().unwrap_or(0);
        let mut stream = redactor.stream();
        let mut got = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts {
            let (chunk, later) = rest.split_at(cut.min(rest.len()));
            got.extend(stream.push(chunk));
            prop_assert!(stream.held_back() <= longest);
            rest = later;
        }
        got.extend(stream.push(rest));
        got.extend(stream.finish());
        let whole = redactor.redact_bytes(text.as_bytes());
        prop_assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&whole));
        for secret in &secrets {
            for shape in shapes(secret) {
                prop_assert!(!String::from_utf8_lossy(&whole).contains(&shape), "{} in {:?}", shape, whole);
            }
        }
    }

    #[test]
    fn a_stream_masks_keys_like_the_whole_however_it_is_cut(
        known in proptest::collection::vec("[ab1]{6,9}|AKIA[A-Z]{3}|ghp_[ab]{4}", 0..3),
        text in "[ab1 =\n\"-]{0,80}",
        planted in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..6),
        cuts in proptest::collection::vec(1usize..40, 0..80),
    ) {
        let mut text = text;
        for (which, place) in planted {
            let keys = keys();
            let (_, key) = &keys[which.index(keys.len())];
            let from = place.index(3).min(1) * place.index(key.len());
            text.insert_str(place.index(text.len() + 1), &key[from..]);
        }
        let redactor = Redactor::new(&known).expect("small secrets").and_keys();
        let mut stream = redactor.stream();
        let mut got = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts {
            let (chunk, later) = rest.split_at(cut.min(rest.len()));
            got.extend(stream.push(chunk));
            rest = later;
        }
        got.extend(stream.push(rest));
        got.extend(stream.finish());
        let whole = redactor.redact_bytes(text.as_bytes());
        prop_assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&whole));
    }

    #[test]
    fn l69_a_value_holds_no_secret_at_any_depth(
        secret in "[a-z]{6,10}", key in "[A-Z]{0,3}", depth in 0usize..6,
    ) {
        let mut value = json!({format!("{key}{secret}"): [1, secret.clone()], secret.clone(): null, "***": 0});
        for _ in 0..depth {
            value = json!([{ "k": value }]);
        }
        let fields = count(&value);
        redactor(&[&secret]).redact_value(&mut value);
        prop_assert!(!value.to_string().contains(&secret));
        prop_assert_eq!(count(&value), fields, "no field is lost when keys become equal");
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(|v| 1 + count(v)).sum(),
        _ => 0,
    }
}

#[test]
fn secrets_that_overlap_leave_no_rest_of_either() {
    let redactor = redactor(&["abcdefgh", "fghijklm", "abcdef"]);
    assert_eq!(redactor.redact_text("<abcdefghijklm>"), "<***>");
    assert_eq!(redactor.redact_text("<abcdefX>"), "<***X>");
    assert_eq!(redactor.redact_text("<abcdefghabcdefgh>"), "<***>", "touching masks are one");
}

#[test]
fn a_secret_of_asterisks_does_not_reappear_in_its_own_masks() {
    assert_eq!(redactor(&["******"]).redact_text("<************>"), "<***>");
}

#[test]
fn nothing_to_mask_costs_nothing() {
    let none = Redactor::new(["", "12345"]).expect("nothing to look for");
    assert!(none.is_empty() && Redactor::none().is_empty());
    assert!(matches!(none.redact_text("12345"), Cow::Borrowed("12345")));
    assert!(matches!(none.redact_bytes(b"x"), Cow::Borrowed(_)));
    let mut stream = none.stream();
    assert_eq!((stream.push(b"12345"), stream.held_back()), (b"12345".to_vec(), 0));
    assert!(matches!(redactor(&["123456"]).redact_text("clean"), Cow::Borrowed(_)));
}

#[test]
fn values_shorter_than_the_minimum_are_left_alone() {
    let short = "x".repeat(MIN_REDACTED_BYTES - 1);
    assert_eq!(redactor(&[&short]).redact_text(&short), short);
    let long = "x".repeat(MIN_REDACTED_BYTES);
    assert_eq!(redactor(&[&long]).redact_text(&long), MASK);
}

#[test]
fn a_value_with_a_line_end_is_known_without_it_too() {
    assert_eq!(redactor(&["s3cr3t-token\n"]).redact_text("T=s3cr3t-token;"), "T=***;");
}

#[test]
fn numbers_are_masked_and_bytes_need_not_be_text() {
    let mut value = json!({"account": 12_345_678, "n": 1});
    redactor(&["12345678"]).redact_value(&mut value);
    assert_eq!(value, json!({"account": "***", "n": 1}));
    let binary = [0xff, 0xfe, 0, 1, 2, 3, 4];
    let redactor = Redactor::new([binary]).expect("small");
    assert_eq!(redactor.redact_bytes(&[&b"a"[..], &binary, b"b"].concat()).as_ref(), b"a***b");
    assert_eq!(redactor.redact_text(&hex(&binary)), MASK);
}

#[test]
fn a_redactor_does_not_print_its_secrets() {
    let redactor = redactor(&["open sesame"]);
    let mut stream = redactor.stream();
    stream.push(b"open ses");
    let shown = format!("{redactor:?} {stream:?}");
    assert!(!shown.contains("open") && !shown.contains("ses"), "{shown}");
}

#[test]
fn secrets_too_large_to_search_for_are_an_error_without_content() {
    let huge = "correct horse battery staple ".repeat(5_000);
    let error = Redactor::new([huge]).expect_err("over the limit");
    assert!(!error.to_string().contains("horse"), "{error}");
}

/// Measured in release: `cargo test --release -p portcullis-secret --test redaction -- --nocapture speed`.
#[test]
fn speed_of_a_search_grows_with_the_text_and_not_with_the_secrets() {
    let text = "the quick brown fox jumps over 13 lazy dogs; 0badcafe YWJjZGVm %20 ".repeat(1_000);
    for (name, count, length) in [("one token", 1, 40), ("a hundred tokens", 100, 40), ("ten keys", 10, 1_600)] {
        let secrets: Vec<String> =
            (0..count).map(|i| format!("{i:03}Kq/+x-").repeat(length / 8)[..length].to_owned()).collect();
        let start = std::time::Instant::now();
        let redactor = Redactor::new(&secrets).expect("within the limit");
        let built = start.elapsed();
        let start = std::time::Instant::now();
        assert!(matches!(redactor.redact_text(&text), Cow::Borrowed(_)));
        let first = start.elapsed();
        let start = std::time::Instant::now();
        assert!(matches!(redactor.redact_text(&text), Cow::Borrowed(_)));
        println!("{name}: built in {built:?}, {} bytes in {first:?}, again in {:?}", text.len(), start.elapsed());
        // A wide margin: debug builds on a busy machine. Trying each secret at each place would still show.
        assert!(first < std::time::Duration::from_secs(20), "{name}: {first:?}");
    }
}

/// Values that look like keys, made up here, with the words that stand in their place.
fn keys() -> Vec<(&'static str, String)> {
    let letters: String = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    let of = |prefix: &str, len: usize| format!("{prefix}{}", letters.repeat(8).split_at(len).0);
    let block = |kind: &str, end: &str| {
        let lines: String =
            letters.repeat(8).as_bytes().chunks(64).map(|l| String::from_utf8_lossy(l) + "\n").collect();
        format!("-----BEGIN {kind}-----\n{lines}-----{end} {kind}-----")
    };
    vec![
        ("aws key", "AKIA2QWERTYUIOPASDFG".to_owned()),
        ("aws key", "ASIA2QWERTYUIOPASDFG".to_owned()),
        ("github token", of("ghp_", 36)),
        ("github token", of("gho_", 36)),
        ("github token", of("ghs_", 36)),
        ("github token", of("github_pat_", 82)),
        ("gitlab token", of("glpat-", 20)),
        ("anthropic key", of("sk-ant-api03-", 93)),
        ("api key", of("sk-proj-", 120)),
        ("api key", of("sk-", 48)),
        ("slack token", "xoxb-123456789012-abcdefGHIJ".to_owned()),
        ("stripe key", of("sk_live_", 24)),
        ("google key", of("AIza", 35)),
        ("google token", of("ya29.", 60)),
        ("npm token", of("npm_", 36)),
        ("pypi token", of("pypi-AgEIcHlwaS5vcmc", 100)),
        ("hugging face token", of("hf_", 34)),
        ("docker token", of("dckr_pat_", 27)),
        ("vault token", of("hvs.", 90)),
        ("cargo registry token", of("cio", 32)),
        ("databricks token", format!("dapi{}", "0123456789abcdef".repeat(2))),
        ("groq key", of("gsk_", 52)),
        ("xai key", of("xai-", 80)),
        ("replicate token", of("r8_", 37)),
        ("linear key", of("lin_api_", 40)),
        ("notion token", of("ntn_", 46)),
        ("notion token", of("secret_", 43)),
        ("shopify token", format!("shpat_{}", "0123456789abcdef".repeat(2))),
        ("fly token", of("fm2_", 100)),
        ("fly token", of("FlyV1 fm2_", 100)),
        ("supabase token", format!("sbp_{}", "0123456789abcdef0123".repeat(2))),
        ("doppler token", of("dp.pt.", 43)),
        ("sentry token", of("sntrys_", 100)),
        ("atlassian token", of("ATATT3", 180)),
        (
            "jwt",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJVadQssw5c".to_owned(),
        ),
        ("private key", block("RSA PRIVATE KEY", "END")),
        ("private key", block("OPENSSH PRIVATE KEY", "END")),
        ("private key", block("PRIVATE KEY", "END").replace('\n', "\\n")),
        (
            "private key",
            format!("PuTTY-User-Key-File-3: ssh-rsa\nComment: a\nPrivate-Lines: 1\n{letters}\nPrivate-MAC: 0a1b2c"),
        ),
    ]
}

#[test]
fn keys_of_known_issuers_are_masked_with_words_that_say_what_stood_there() {
    let redactor = Redactor::none().and_keys();
    for (label, key) in keys() {
        for (before, after) in [
            ("", ""),
            ("KEY=", "\n"),
            ("\"", "\","),
            ("  12\t", " # live\n"),
            ("https://u:", "@host/"),
            ("my-", ""),
            ("https://x_", "@host"),
        ] {
            let text = format!("{before}{key}{after}");
            let masks = vec![format!("[redacted: {label}]"); key.lines().count()];
            assert_eq!(redactor.redact_text(&text), format!("{before}{}{after}", masks.join("\n")), "{text}");
        }
        let marker = format!("a [redacted: {label}] b [redacted: {label}]");
        assert_eq!(portcullis_secret::markers(&marker), [(format!("[redacted: {label}]"), 2)]);
    }
    let value = "aB3/".repeat(9) + "wXyZ";
    for (name, gap) in [
        ("aws_secret_access_key", " = "),
        ("AWS_SECRET_ACCESS_KEY", "="),
        ("\"SecretAccessKey\"", ": \""),
        ("aws_secret_key", "="),
        ("secret_access_key", "                    =   "),
        ("Aws_Secret_Access_Key", ": "),
        ("AWSSecretKey", " => '"),
        ("<SecretAccessKey", ">"),
        ("secretAccessKey", ":\n    \""),
    ] {
        let text = format!("{name}{gap}{value}\n");
        assert_eq!(redactor.redact_text(&text), format!("{name}{gap}[redacted: aws secret key]\n"));
    }
    let mut value = json!({"a": [keys()[0].1.clone()], "n": 12});
    redactor.redact_value(&mut value);
    assert_eq!(value, json!({"a": ["[redacted: aws key]"], "n": 12}));
}

#[test]
fn what_only_looks_a_little_like_a_key_stays() {
    let redactor = Redactor::none().and_keys();
    for text in [
        "ghp_[A-Za-z0-9]{36}",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-ant-...",
        "export OPENAI_API_KEY=sk-your-key-here",
        "task-0123456789abcdefghijklmnopqrstuvwxyz",
        "MAKIA2QWERTYUIOPASDFG AKIA2QWERTYUIOPASDFGH",
        "aws_secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY']",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCARygAwIBAgIUQWxsIHRoZSBzYW1lLCBhbGwgZ29uZQ\n-----END CERTIFICATE-----",
        "if line == \"-----BEGIN RSA PRIVATE KEY-----\" { return Err(Refused) }",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.payload.signature and eyJhbGciOiJIUzI1NiJ9 alone",
        "secret_key_of_the_application_that_is_much_longer_than_that",
        "scio0123456789abcdefghijklmnopqrstuv cio.read dapi_client r8_register xai-grok-2 FlyV1 is a scheme",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "ghp_example0123456789abcdefghijklmnopqrst",
        "risk_0123456789abcdefghijklmnopqrstuvwxyz disk-0123456789abcdefghijklmnopqrstuvwxyz",
    ] {
        assert_eq!(redactor.redact_text(text), text);
    }
    // Words behind a whole value do not make it an example.
    let named = format!("{}_EXAMPLE", keys()[2].1);
    assert_eq!(redactor.redact_text(&named), "[redacted: github token]");
    assert!(portcullis_secret::markers("a list [redacted] and [redacted: by law]").is_empty());
}

#[test]
fn a_private_key_keeps_its_lines_their_ends_and_what_stands_before_them() {
    let redactor = Redactor::none().and_keys();
    let (_, key) = &keys().into_iter().find(|(label, key)| *label == "private key" && key.contains('\n')).expect("one");
    let mask = "[redacted: private key]";
    for end in ["\n", "\r\n", "\n    "] {
        let text = format!("a{end}{}{end}b{end}", key.replace('\n', end));
        let masks = vec![mask; key.lines().count()].join(end);
        assert_eq!(redactor.redact_text(&text), format!("a{end}{masks}{end}b{end}"));
    }
    let headers = key.replacen('\n', "\nProc-Type: 4,ENCRYPTED\n\n", 1);
    let masked = redactor.redact_text(&headers).into_owned();
    assert_eq!(masked.lines().count(), headers.lines().count());
    assert!(masked.lines().all(|line| line.is_empty() || line == mask), "{masked}");
}

#[test]
fn live_output_is_held_back_by_a_token_at_most() {
    let mut stream = Redactor::none().and_keys().stream();
    assert_eq!(stream.push(b"Compiling one v1.0\nCompiling t"), b"Compiling one v1.0\nCompiling t");
    assert_eq!(stream.push(b"wo ghp_abc"), b"wo ");
    assert_eq!(stream.push(b" and off."), b"ghp_abc and off.");
}
