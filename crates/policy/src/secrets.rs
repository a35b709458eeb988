//! Names of files that hold secrets by custom. Every tool that would show such a file asks; commands see it empty. A rule
//! that names the file decides otherwise.
//!
//! A name alone does not tell everything: what git tracks is shared already, and a certificate is public. Whoever can look
//! at the file does so ([`SecretName::look`]).

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::named::Hit;
use crate::places::is_name;

/// What the content must be looked at for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The name is enough.
    NameTells,
    /// It counts only if it holds a token or a password for a registry.
    RegistryToken,
    /// It counts unless it is public throughout, such as a certificate.
    PrivateKey,
}

/// One kind of name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretName {
    /// Names, in lower case, joined by `/`. A `*` that begins a name stands for any characters; a `/` at the end says
    /// that everything beneath counts.
    pub pattern: &'static str,
    pub look: Look,
    pub why: &'static str,
}

const fn name(pattern: &'static str, look: Look, why: &'static str) -> SecretName {
    SecretName { pattern, look, why }
}

use Look::{NameTells, PrivateKey, RegistryToken};

/// Every name, most particular first.
pub const SECRETS: &[SecretName] = &[
    name(".ssh/", NameTells, "it holds keys for logging in"),
    name(".env", NameTells, "it holds the variables of an application, passwords and keys among them"),
    name(".envrc", NameTells, "it exports the variables of a project, passwords and keys among them"),
    name("id_rsa", NameTells, "it is a private key for logging in"),
    name("id_dsa", NameTells, "it is a private key for logging in"),
    name("id_ecdsa", NameTells, "it is a private key for logging in"),
    name("id_ed25519", NameTells, "it is a private key for logging in"),
    name(".netrc", NameTells, "it holds passwords for hosts"),
    name("_netrc", NameTells, "it holds passwords for hosts"),
    name(".pgpass", NameTells, "it holds passwords for databases"),
    name(".my.cnf", NameTells, "it holds passwords for databases"),
    name(".htpasswd", NameTells, "it holds passwords of a web server"),
    name(".git-credentials", NameTells, "it holds passwords for repositories"),
    name(".pypirc", NameTells, "it holds passwords for package registries"),
    name(".dockercfg", NameTells, "it holds passwords for image registries"),
    name(".vault-token", NameTells, "it is a token for a vault"),
    name(".npmrc", RegistryToken, "it holds a token for a package registry"),
    name(".yarnrc.yml", RegistryToken, "it holds a token for a package registry"),
    name(".aws/credentials", NameTells, "it holds keys for a cloud"),
    name(".azure/", NameTells, "it holds tokens for a cloud"),
    name(".config/gcloud/", NameTells, "it holds tokens for a cloud"),
    name("application_default_credentials.json", NameTells, "it holds a key for a cloud"),
    name("service-account.json", NameTells, "it holds a key for a cloud"),
    name("service_account.json", NameTells, "it holds a key for a cloud"),
    name("serviceaccount.json", NameTells, "it holds a key for a cloud"),
    name(".kube/config", NameTells, "it holds keys for clusters"),
    name(".docker/config.json", NameTells, "it holds passwords for image registries"),
    name(".gnupg/", NameTells, "it holds private keys"),
    name("*.pem", PrivateKey, "it may be a private key"),
    name("*.key", PrivateKey, "it may be a private key"),
    name("*.p12", NameTells, "it holds a private key"),
    name("*.pfx", NameTells, "it holds a private key"),
    name("*.kdbx", NameTells, "it holds passwords"),
];

/// The variables of one environment (`.env.local`), except those that are there to be copied.
const VARIABLES: SecretName =
    name(".env.", NameTells, "it holds the variables of an application, passwords and keys among them");
const EXAMPLES: &[&str] = &[".example", ".sample", ".template", ".dist", ".defaults"];

/// Parts of a name that say what a file holds, unless its ending says that it is something to read or to run.
const TELLING: &[SecretName] = &[
    name("password", NameTells, "its name says that it holds passwords"),
    name("creds", NameTells, "its name says that it holds credentials"),
    name("credential", NameTells, "its name says that it holds credentials"),
    name("secret", NameTells, "its name says that it holds secrets"),
];

/// Endings of source code, documents and pictures.
const SOURCE: &[&str] = &[
    "rs", "py", "pyi", "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "go", "c", "h", "cc", "cpp", "cxx", "hpp",
    "hh", "java", "kt", "kts", "scala", "rb", "erb", "php", "cs", "fs", "vb", "swift", "m", "mm", "ex", "exs", "erl",
    "hrl", "hs", "ml", "mli", "clj", "cljs", "edn", "lua", "pl", "pm", "r", "jl", "dart", "zig", "nim", "v", "vue",
    "svelte", "astro", "sh", "bash", "zsh", "fish", "ps1", "bat", "sql", "proto", "graphql", "gql", "tf", "hcl", "nix",
    "md", "mdx", "rst", "adoc", "txt.md", "html", "htm", "css", "scss", "less", "svg", "png", "jpg", "jpeg", "gif",
    "webp", "ico", "snap", "lock", "d", "o", "a", "so", "rlib", "rmeta", "class", "jar", "pyc", "wasm", "map", "po",
    "mo", "pdf", "feature", "tmpl", "tpl", "j2", "example", "sample", "template", "dist", "pub",
];

/// Folders that package managers and compilers fill: what others published, and what was built from it.
const FILLED: &[&str] =
    &["node_modules", "site-packages", "vendor", "target", ".venv", "venv", ".tox", ".git", "__pycache__"];

/// The names with which secrets begin, and the ends of those that only end in something. A look through a tree asks this of
/// every name.
static FIRST: LazyLock<(HashSet<&'static str>, Vec<&'static str>)> = LazyLock::new(|| {
    let first = SECRETS.iter().filter_map(|secret| secret.pattern.split('/').next());
    let (ends, whole): (Vec<&str>, Vec<&str>) = first.partition(|name| name.starts_with('*'));
    (whole.into_iter().collect(), ends.into_iter().map(|name| name.trim_start_matches('*')).collect())
});

impl SecretName {
    /// Whether the name is one that only such files bear; else it only sounds like one.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.look == NameTells && !TELLING.contains(self)
    }
}

/// Whether a name may be one of these, whatever folder it is in: for whoever looks through a tree.
#[must_use]
pub fn may_be_secret(name: &str) -> bool {
    let (whole, ends) = &*FIRST;
    let low = name.to_lowercase();
    whole.contains(low.as_str()) || ends.iter().any(|end| low.ends_with(end)) || by_last_name(&low).is_some()
}

/// The same for a file in these folders, joined by `/`.
#[must_use]
pub fn may_lead_to_secret(folders: &str, name: &str) -> bool {
    let begins = |folder: &str| {
        let first = |secret: &SecretName| secret.pattern.split_once('/').map(|(first, _)| first);
        SECRETS.iter().filter_map(first).any(|first| is_name(first, folder))
    };
    may_be_secret(name) || folders.split('/').any(begins)
}

/// By the last name of a path, which may be in any letter case.
fn by_last_name(name: &str) -> Option<&'static SecretName> {
    let low = name.to_lowercase();
    if low.starts_with(VARIABLES.pattern) {
        return (!EXAMPLES.iter().any(|end| low.ends_with(end))).then_some(&VARIABLES);
    }
    let telling = TELLING.iter().find(|telling| low.contains(telling.pattern))?;
    let ending = low.rsplit_once('.').filter(|(before, _)| !before.is_empty()).map(|(_, ending)| ending);
    (!ending.is_some_and(|ending| SOURCE.contains(&ending))).then_some(telling)
}

fn names_of(path: &str) -> Vec<&str> {
    path.split('/').filter(|name| !name.is_empty()).collect()
}

/// Where a path is one: the entry, and the numbers of the names that tell.
fn found(names: &[&str]) -> Option<(&'static SecretName, std::ops::Range<usize>)> {
    let last = names.len().checked_sub(1)?;
    if names[..last].iter().any(|name| FILLED.iter().any(|filled| filled.eq_ignore_ascii_case(name))) {
        return None;
    }
    // A public key is no secret, wherever it lies.
    if names[last].to_lowercase().ends_with(".pub") {
        return None;
    }
    for secret in SECRETS {
        let parts: Vec<&str> = secret.pattern.trim_end_matches('/').split('/').collect();
        for start in 0..names.len().saturating_sub(parts.len() - 1) {
            let end = start + parts.len();
            let fits = parts.iter().zip(&names[start..]).all(|(part, name)| is_name(part, name));
            if fits && (end == names.len() || secret.pattern.ends_with('/')) {
                return Some((secret, start..end));
            }
        }
    }
    by_last_name(names[last]).map(|secret| (secret, last..last + 1))
}

/// The entry that a canonical path falls under, by its names alone.
#[must_use]
pub fn secret(path: &str) -> Option<&'static SecretName> {
    found(&names_of(path)).map(|(secret, _)| secret)
}

/// Whether a file of this name holds secrets in every folder, also in those that package managers fill.
#[must_use]
pub fn outlasts_renames(name: &str) -> bool {
    secret(&format!("/vendor/{name}")).is_some()
}

/// What a rule must name to speak of it.
pub(crate) fn hit(path: &str) -> Option<Hit> {
    let (secret, at) = found(&names_of(path))?;
    let parts: Vec<&'static str> = secret
        .pattern
        .trim_matches('/')
        .split('/')
        .map(|part| part.trim_start_matches('*').trim_end_matches('.'))
        .collect();
    let signs = at.zip(parts).collect();
    Some(Hit { name: secret.pattern, why: secret.why, signs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check34_names_of_secrets_are_known_in_any_folder_and_letter_case() {
        for path in [
            "/workspace/.env",
            "/workspace/a/.ENV",
            "/workspace/.env.local",
            "/workspace/.env.production",
            "/workspace/id_rsa",
            "/workspace/keys/id_ed25519",
            "/workspace/server.pem",
            "/workspace/tls/Server.KEY",
            "/workspace/.ssh/config",
            "/workspace/.ssh",
            "/workspace/.netrc",
            "/workspace/.npmrc",
            "/workspace/.aws/credentials",
            "/workspace/.config/gcloud/access_tokens.db",
            "/workspace/gha-creds-1.json",
            "/workspace/.password",
            "/workspace/db_password.txt",
            "/workspace/credentials",
            "/workspace/client_secret_1.json",
            "/workspace/secrets.yaml",
            "/workspace/.kube/config",
            "/workspace/.docker/config.json",
            "/workspace/.git-credentials",
        ] {
            assert!(secret(path).is_some(), "{path}");
            assert!(names_of(path).iter().any(|name| may_be_secret(name)), "{path}");
            let (folders, name) = path.rsplit_once('/').expect("a folder");
            assert!(may_lead_to_secret(folders, name), "{path}");
        }
        for path in [
            "/workspace/.env.example",
            "/workspace/.env.sample",
            "/workspace/.env.template",
            "/workspace/env",
            "/workspace/id_rsa.pub",
            "/workspace/.ssh/id_rsa.pub",
            "/workspace/src/password.rs",
            "/workspace/src/secrets.py",
            "/workspace/docs/password-policy.md",
            "/workspace/node_modules/x/test/key.pem",
            "/workspace/venv/lib/site-packages/certifi/cacert.pem",
            "/workspace/config",
            "/workspace/.aws/config",
            "/workspace/keyboard.json",
            "/workspace/monkey",
            "/workspace/Cargo.lock",
        ] {
            assert_eq!(secret(path), None, "{path}");
        }
    }
}
