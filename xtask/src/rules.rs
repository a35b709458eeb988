//! The rules as data: what is allowed, what is not, and where the limits are.

/// The line of each crate (folder name under `crates/`), as its paragraph in ARCHITECTURE.md says: a crate may depend only
/// on crates of strictly earlier lines.
pub const LINES: &[(&str, u8)] = &[
    ("base", 1),
    ("secret", 2),
    ("command", 3),
    ("contract", 3),
    ("event", 3),
    ("store", 4),
    ("policy", 4),
    ("sandbox", 4),
    ("store-testkit", 5),
    ("factcheck", 5),
    ("pipeline", 5),
    ("model", 5),
    ("agent", 6),
    ("tools", 7),
    ("harness", 7),
    ("store-sqlite", LEAF_LINE),
    ("store-postgres", LEAF_LINE),
    ("artifacts-s3", LEAF_LINE),
    ("code", LEAF_LINE),
    ("config", 9),
    ("portcullis", 10),
    ("terminal", 11),
    ("mcp", 11),
    ("server", 11),
    ("cli", 12),
];

/// The line of the leaves, each of which holds one heavy dependency.
pub const LEAF_LINE: u8 = 8;

/// Workspace packages that are tools of the repository: they stand outside the order, and no crate may depend on them.
pub const TOOL_PACKAGES: &[&str] = &["xtask", "portcullis-bench", "portcullis-simulation"];

/// Crates for tests: another crate may have them as a dev-dependency only, so that no release holds them. The tools of the
/// repository may depend on them.
pub const TEST_PACKAGES: &[&str] = &["portcullis-store-testkit"];

/// Crates that nothing before the leaves may reach, even indirectly.
pub const HEAVY: &[&str] = &["rusqlite", "tokio-postgres", "object_store", "rquickjs", "rmcp", "axum"];

/// Crates that may be nowhere in the resolved graph, and why.
pub const FORBIDDEN: &[(&str, &str)] = &[
    ("aws-lc-sys", "TLS is rustls with ring"),
    ("aws-lc-rs", "TLS is rustls with ring"),
    ("openssl-sys", "TLS is rustls with ring"),
    ("sqlx", "it pins an old libsqlite3-sys"),
    ("serde_yaml", "it is no longer maintained"),
];

/// Crates that ours may not use themselves, and why; others may bring them (`reedline` brings `chrono`).
pub const NOT_OURS: &[(&str, &str)] = &[("chrono", "time is jiff, behind `Clock`")];

/// Licences we accept, each as one SPDX term (an exception belongs to its term).
pub const LICENCES: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "BSL-1.0",
    "CC0-1.0",
    // Lists of root certificates, which are data.
    "CDLA-Permissive-2.0",
    "ISC",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Hosts of package registries as labels, written apart so that this file names none of them either.
pub const REGISTRY_HOSTS: &[&[&str]] = &[
    &["crates", "io"],
    &["pypi", "org"],
    &["pythonhosted", "org"],
    &["npmjs", "org"],
    &["npmjs", "com"],
    &["yarnpkg", "com"],
    &["deb", "debian", "org"],
    &["security", "debian", "org"],
    &["snapshot", "debian", "org"],
];

/// So many mutants are kept at most, one for each promise that matters: all of them must run within an hour. Each later
/// issue may add ten.
pub const MUTANTS: usize = 130;

/// The only folder whose Rust files may hold unsafe code.
pub const UNSAFE_FOLDER: &str = "crates/sandbox/";

/// A Rust file longer than this gets a warning: a file holds one idea.
pub const LINES_WARN: usize = 400;
/// A Rust file longer than this fails the check.
pub const LINES_FAIL: usize = 700;

/// `examples/embed/src/main.rs` must be shorter than this.
pub const EMBED_LINES: usize = 60;
/// What an embedder who uses neither server nor database must not build.
pub const EMBED_ABSENT: &[&str] = &["axum", "rmcp", "rusqlite", "rquickjs"];

/// Documents whose references are not checked, and why.
pub const REFERENCES_UNCHECKED: &[(&str, &str)] =
    &[("docs/laws.md", "it is made from docs/spec, whose sections cite each other by number alone")];
