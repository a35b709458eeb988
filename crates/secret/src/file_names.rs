//! Names of files that hold secrets by custom. Every tool that would show such a file asks; commands see nothing of it. A
//! rule that names the file decides otherwise.
//!
//! A name alone does not tell everything: what git tracks is shared already, and a certificate is public. A caller that
//! can look at the file does so ([`SecretName::look`]).

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::sounding;

/// What the content must be looked at for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentCheck {
    /// The name is enough.
    NameTells,
    /// It counts only if it holds a token or a password for a registry.
    RegistryToken,
    /// It counts unless it is public throughout, such as a certificate.
    PrivateKey,
}

/// The folders in which a name counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameScope {
    /// In every folder: no package is published with such a file, and a command can move one anywhere.
    Everywhere,
    /// Not in [`FILLED`] folders: packages bring files of this name for their tests.
    Own,
}

/// One kind of name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretName {
    /// Names, in lower case, joined by `/`. A `*` stands for any characters and is in the last name alone; a `/` at the end
    /// says that everything beneath counts.
    pub pattern: &'static str,
    pub look: ContentCheck,
    pub why: &'static str,
    counts: NameScope,
}

/// A name that only such files bear.
const fn name(pattern: &'static str, why: &'static str) -> SecretName {
    SecretName { pattern, look: ContentCheck::NameTells, why, counts: NameScope::Everywhere }
}

/// A name that counts where no package manager put it.
pub(crate) const fn own(pattern: &'static str, why: &'static str) -> SecretName {
    SecretName { counts: NameScope::Own, ..name(pattern, why) }
}

const fn looked(look: ContentCheck, one: SecretName) -> SecretName {
    SecretName { look, ..one }
}

const VARIABLES_WHY: &str = "it holds the variables of an application, passwords and keys among them";
const LOGIN_KEY: &str = "it is a private key for logging in";
const CLOUD: &str = "it holds keys or tokens for a cloud";
const AGENT: &str = "it holds the token of a coding agent";
const HISTORY: &str = "it holds what somebody typed, passwords among it";
const TOKEN: &str = "its name says that it is a token for a service";
const KEYS: &str = "it holds a private key";
const STATE: &str = "it holds values of an infrastructure, passwords and keys among them";

/// Every name, most particular first.
pub const SECRETS: &[SecretName] = &[
    name(".ssh/", "it holds keys for logging in"),
    name(".env", VARIABLES_WHY),
    name(".envrc", "it exports the variables of a project, passwords and keys among them"),
    name(".flaskenv", VARIABLES_WHY),
    name("*.env", VARIABLES_WHY),
    name("id_rsa", LOGIN_KEY),
    name("id_dsa", LOGIN_KEY),
    name("id_ecdsa", LOGIN_KEY),
    name("id_ed25519", LOGIN_KEY),
    name("ssh_host_*_key", LOGIN_KEY),
    looked(ContentCheck::PrivateKey, own("*_rsa", LOGIN_KEY)),
    looked(ContentCheck::PrivateKey, own("*_dsa", LOGIN_KEY)),
    looked(ContentCheck::PrivateKey, own("*_ecdsa", LOGIN_KEY)),
    looked(ContentCheck::PrivateKey, own("*_ed25519", LOGIN_KEY)),
    own("*.ppk", LOGIN_KEY),
    looked(ContentCheck::PrivateKey, own("ssh_key", LOGIN_KEY)),
    looked(ContentCheck::PrivateKey, own("deploy_key", LOGIN_KEY)),
    name(".envs/", VARIABLES_WHY),
    name("local.settings.json", VARIABLES_WHY),
    name(".sentryclirc", "it holds a token for a service"),
    name(".github_token", "it holds a token for repositories"),
    name(".gitlab-token", "it holds a token for repositories"),
    name(".token", TOKEN),
    own("token.txt", TOKEN),
    own("*_token.txt", TOKEN),
    own("*api_key.txt", TOKEN),
    own("*api-key.txt", TOKEN),
    own("*apikey.txt", TOKEN),
    own("*vault-pass.txt", "it is a password for a vault"),
    own("*vault_pass.txt", "it is a password for a vault"),
    name(".msmtprc", "it holds passwords for mail"),
    name(".fetchmailrc", "it holds passwords for mail"),
    name(".snowsql/config", "it holds passwords for databases"),
    name(".vscode/sftp.json", "it holds passwords for hosts"),
    name(".ftpconfig", "it holds passwords for hosts"),
    name(".netrc", "it holds passwords for hosts"),
    name("_netrc", "it holds passwords for hosts"),
    name(".authinfo", "it holds passwords for hosts"),
    name(".authinfo.gpg", "it holds passwords for hosts"),
    name(".pgpass", "it holds passwords for databases"),
    name(".my.cnf", "it holds passwords for databases"),
    name(".mylogin.cnf", "it holds passwords for databases"),
    name(".htpasswd", "it holds passwords of a web server"),
    name(".git-credentials", "it holds passwords for repositories"),
    name(".config/git/credentials", "it holds passwords for repositories"),
    name(".config/gh/hosts.yml", "it holds a token for repositories"),
    name(".config/hub", "it holds a token for repositories"),
    name(".pypirc", "it holds passwords for package registries"),
    name(".m2/settings.xml", "it holds passwords for package registries"),
    name(".m2/settings-security.xml", "it holds passwords for package registries"),
    name(".cargo/credentials", "it holds a token for a package registry"),
    name(".cargo/credentials.toml", "it holds a token for a package registry"),
    name(".gem/credentials", "it holds a token for a package registry"),
    name(".dockercfg", "it holds passwords for image registries"),
    name(".docker/config.json", "it holds passwords for image registries"),
    name(".config/containers/auth.json", "it holds passwords for image registries"),
    name(".dockerconfigjson", "it holds passwords for image registries"),
    name(".vault-token", "it is a token for a vault"),
    name(".vault_pass*", "it is a password for a vault"),
    looked(ContentCheck::RegistryToken, name(".npmrc", "it holds a token for a package registry")),
    looked(ContentCheck::RegistryToken, name(".yarnrc.yml", "it holds a token for a package registry")),
    name(".aws/credentials", CLOUD),
    name(".aws/sso/", CLOUD),
    name(".aws/cli/", CLOUD),
    name(".azure/", CLOUD),
    name(".oci/", CLOUD),
    name(".config/gcloud/", CLOUD),
    name(".config/doctl/config.yaml", CLOUD),
    name(".config/rclone/rclone.conf", CLOUD),
    name("rclone.conf", CLOUD),
    name(".rclone.conf", CLOUD),
    name(".aws/config", CLOUD),
    name(".dev.vars", VARIABLES_WHY),
    name(".composer/auth.json", "it holds passwords for package registries"),
    name("rootkey.csv", CLOUD),
    own("*_accesskeys.csv", CLOUD),
    name(".fly/config.yml", CLOUD),
    name(".s3cfg", CLOUD),
    name(".boto", CLOUD),
    name(".databrickscfg", CLOUD),
    name("application_default_credentials.json", CLOUD),
    own("*service-account*.json", CLOUD),
    own("*service_account*.json", CLOUD),
    own("*serviceaccount*.json", CLOUD),
    own("*firebase-adminsdk*.json", CLOUD),
    name(".kube/", "it holds keys for clusters"),
    name("kubeconfig", "it holds keys for clusters"),
    name("kubeconfig.yaml", "it holds keys for clusters"),
    name("kubeconfig.yml", "it holds keys for clusters"),
    own("*.kubeconfig", "it holds keys for clusters"),
    own("*.tfvars", STATE),
    own("*.tfvars.json", STATE),
    name("terraform.tfstate*", STATE),
    own("*.tfstate", STATE),
    name(".terraformrc", "it holds a token for a registry of terraform"),
    name(".terraform.d/credentials.tfrc.json", "it holds a token for a registry of terraform"),
    name(".codex/auth.json", AGENT),
    name(".claude.json", AGENT),
    name(".claude/.credentials.json", AGENT),
    name(".gemini/oauth_creds.json", AGENT),
    name(".config/github-copilot/", AGENT),
    name(".gnupg/", "it holds private keys"),
    name(".config/sops/age/keys.txt", "it holds private keys"),
    name(".password-store/", "it holds passwords"),
    name(".local/share/keyrings/", "it holds passwords"),
    name(".*_history", HISTORY),
    name(".histfile", HISTORY),
    name(".zhistory", HISTORY),
    name("fish_history", HISTORY),
    looked(ContentCheck::PrivateKey, own("*.pem", "it may be a private key")),
    looked(ContentCheck::PrivateKey, own("*.key", "it may be a private key")),
    own("*.p12", KEYS),
    own("*.pfx", KEYS),
    own("*.p8", KEYS),
    own("*.pk8", KEYS),
    own("*.jks", KEYS),
    own("*.keystore", KEYS),
    own("*.kdbx", "it holds passwords"),
];

/// The variables of one environment (`.env.local`, `.env-prod`, `.env~`), except those that are there to be copied.
const VARIABLES: SecretName = name(".env.", VARIABLES_WHY);
/// Another key of a person, or a copy: `id_rsa_work`, `id_ed25519_sk`, `id_rsa.bak`.
const OTHER_KEYS: &[SecretName] =
    &[name("id_rsa", LOGIN_KEY), name("id_dsa", LOGIN_KEY), name("id_ecdsa", LOGIN_KEY), name("id_ed25519", LOGIN_KEY)];
/// Last words of a file that is there to be copied.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist", "defaults", "schema", "tmpl", "tpl"];
/// What parts the words of a name.
const PARTS: [char; 4] = ['.', '-', '_', '~'];

/// Folders that package managers and compilers fill: what others published, and what was built from it.
const FILLED: &[&str] =
    &["node_modules", "site-packages", "vendor", "target", ".venv", "venv", ".tox", "__pycache__", REPOSITORY];
/// Files in it bear the names of branches, none of which begins with a dot.
const REPOSITORY: &str = ".git";

/// The names with which secrets begin, and the patterns of those with a `*`. A look through a tree asks this of every name.
static FIRST: LazyLock<(HashSet<&'static str>, Vec<&'static str>)> = LazyLock::new(|| {
    let first = SECRETS.iter().filter_map(|secret| secret.pattern.split('/').next());
    let (patterns, whole): (Vec<&str>, Vec<&str>) = first.partition(|name| name.contains('*'));
    (whole.into_iter().collect(), patterns)
});

impl SecretName {
    /// Whether the name is one that only such files bear; else it only sounds like one.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.look == ContentCheck::NameTells && !sounding::SOUNDING.contains(self)
    }

    /// Whether it counts for a file whose last name is `last`, in these folders.
    fn counts_in(&self, folders: &[&str], last: &str) -> bool {
        let within = |filled: &str| folders.iter().any(|name| filled.eq_ignore_ascii_case(name));
        match self.counts {
            NameScope::Everywhere => !within(REPOSITORY) || last.starts_with('.'),
            NameScope::Own => !FILLED.iter().any(|filled| within(filled)),
        }
    }
}

/// Whether a name in lower case is one that a pattern means.
fn is_name(pattern: &str, low: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == low };
    let Some(mut left) = low.strip_prefix(begin) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let end = pieces.pop().unwrap_or("");
    for piece in pieces {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(end)
}

/// Whether a name may be one of these, whatever folder it is in: for a walk through a tree.
#[must_use]
pub fn may_be_secret(name: &str) -> bool {
    let (whole, patterns) = &*FIRST;
    let low = name.to_lowercase();
    whole.contains(low.as_str())
        || patterns.iter().any(|pattern| is_name(pattern, &low))
        || by_last_name(&low).is_some()
        || sounding::by_name(&low).is_some()
}

/// The same for a file in these folders, joined by `/`.
#[must_use]
pub fn may_lead_to_secret(folders: &str, name: &str) -> bool {
    let begins = |folder: &str| {
        let first = |secret: &SecretName| secret.pattern.split_once('/').map(|(first, _)| first);
        SECRETS.iter().filter_map(first).any(|first| first.eq_ignore_ascii_case(folder))
    };
    may_be_secret(name) || folders.split('/').any(begins)
}

/// By how the last name of a path, in lower case, begins.
fn by_last_name(low: &str) -> Option<&'static SecretName> {
    let copied = || low.rsplit(PARTS).next().is_some_and(|last| EXAMPLES.contains(&last));
    if low.strip_prefix(".env").is_some_and(|rest| rest.starts_with(PARTS)) {
        return (!copied()).then_some(&VARIABLES);
    }
    let another = |key: &&SecretName| low.strip_prefix(key.pattern).is_some_and(|rest| rest.starts_with(PARTS));
    OTHER_KEYS.iter().find(another).filter(|_| !copied() && !sounding::is_source(low))
}

fn names_of(path: &str) -> Vec<&str> {
    path.split('/').filter(|name| !name.is_empty()).collect()
}

/// Where a path is one: the entry, and the numbers of the names that tell.
fn found(names: &[&str]) -> Option<(&'static SecretName, std::ops::Range<usize>)> {
    let last = names.len().checked_sub(1)?;
    let low: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    // A public key is no secret, wherever it lies.
    if low[last].ends_with(".pub") {
        return None;
    }
    let counts = |secret: &SecretName| secret.counts_in(&names[..last], &low[last]);
    for secret in SECRETS.iter().filter(|secret| counts(secret)) {
        let parts: Vec<&str> = secret.pattern.trim_end_matches('/').split('/').collect();
        for start in 0..names.len().saturating_sub(parts.len() - 1) {
            let end = start + parts.len();
            let fits = parts.iter().zip(&low[start..]).all(|(part, name)| is_name(part, name));
            if fits && (end == names.len() || secret.pattern.ends_with('/')) {
                return Some((secret, start..end));
            }
        }
    }
    by_last_name(&low[last])
        .or_else(|| sounding::by_name(&low[last]).filter(|_| !sounding::is_text_of_program(&low[..last])))
        .filter(|secret| counts(secret))
        .map(|secret| (secret, last..last + 1))
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

/// The entry that a path falls under, and which names of the path tell so: each by its number and the text that tells.
#[must_use]
pub fn telling_names(path: &str) -> Option<(&'static SecretName, Vec<(usize, &'static str)>)> {
    let (secret, at) = found(&names_of(path))?;
    let sign = |part: &'static str| {
        let longest = part.split('*').max_by_key(|piece| piece.len()).unwrap_or(part);
        longest.trim_end_matches('.')
    };
    let parts: Vec<&'static str> = secret.pattern.trim_matches('/').split('/').map(sign).collect();
    Some((secret, at.zip(parts).collect()))
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
            "/workspace/.token",
            "/workspace/ci/token.txt",
            "/workspace/github_token.txt",
            "/workspace/openai_api_key.txt",
            "/workspace/APIKEY.txt",
            "/workspace/ansible-vault-pass.txt",
            "/workspace/.fetchmailrc",
            "/workspace/.password",
            "/workspace/db_password.txt",
            "/workspace/credentials",
            "/workspace/client_secret_1.json",
            "/workspace/secrets.yaml",
            "/workspace/.kube/config",
            "/workspace/.docker/config.json",
            "/workspace/.git-credentials",
            "/workspace/prod.env",
            "/workspace/.aws/config",
            "/workspace/.rclone.conf",
            "/workspace/rclone.conf",
            "/workspace/.dev.vars",
            "/workspace/.composer/auth.json",
            "/workspace/deploy_rsa",
            "/workspace/keys/ci_ed25519",
            "/workspace/.env~",
            "/workspace/.env-prod",
            "/workspace/.env_backup",
            "/workspace/.flaskenv",
            "/workspace/id_ed25519_sk",
            "/workspace/id_ecdsa_sk",
            "/workspace/id_rsa.bak",
            "/workspace/id_rsa_work",
            "/workspace/etc/ssh_host_ed25519_key",
            "/workspace/a.ppk",
            "/workspace/release.jks",
            "/workspace/release.keystore",
            "/workspace/AuthKey_1.p8",
            "/workspace/kubeconfig",
            "/workspace/.kube/prod",
            "/workspace/.aws/sso/cache/1.json",
            "/workspace/.aws/cli/cache/1.json",
            "/workspace/prod.auto.tfvars",
            "/workspace/terraform.tfstate.backup",
            "/workspace/.s3cfg",
            "/workspace/.boto",
            "/workspace/.oci/config",
            "/workspace/.codex/auth.json",
            "/workspace/.claude.json",
            "/workspace/.claude/.credentials.json",
            "/workspace/.config/gh/hosts.yml",
            "/workspace/.m2/settings.xml",
            "/workspace/my-service-account-1.json",
            "/workspace/x-firebase-adminsdk-1-2.json",
            "/workspace/.config/sops/age/keys.txt",
            "/workspace/.password-store/a.gpg",
            "/workspace/.authinfo.gpg",
            "/workspace/.bash_history",
            "/workspace/.psql_history",
            "/workspace/.node_repl_history",
            // A command can move these there.
            "/workspace/vendor/.env",
            "/workspace/target/x/.env.local",
            "/workspace/node_modules/x/id_rsa",
            "/workspace/.venv/.ssh/config",
            "/workspace/venv/.netrc",
            "/workspace/vendor/.aws/credentials",
            "/workspace/vendor/prod.env",
            "/workspace/.git/x/.env",
            "/workspace/lang/.env",
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
            "/workspace/keyboard.json",
            "/workspace/deploy_rsa.pub",
            "/workspace/node_modules/x/test_rsa",
            "/workspace/.devvars",
            "/workspace/monkey",
            "/workspace/Cargo.lock",
            "/workspace/.env-example",
            "/workspace/.environment",
            "/workspace/prod.env.example",
            "/workspace/prod.tfvars.example",
            "/workspace/id_rsa_work.pub",
            "/workspace/src/id_rsa.rs",
            "/workspace/src/id_rsa_parser.go",
            "/workspace/etc/ssh_host_ed25519_key.pub",
            "/workspace/.git/refs/heads/kubeconfig",
            "/workspace/.git/logs/refs/heads/id_rsa",
            "/workspace/target/debug/password",
            "/workspace/node_modules/x/secrets.json",
            "/workspace/vendor/x/test.p12",
            "/workspace/secretary.json",
            "/workspace/tokens.txt",
            "/workspace/src/token.rs",
            "/workspace/tokenizer.json",
            "/workspace/passwordless.yml",
            "/workspace/locales/de/password.json",
            "/workspace/app/i18n/secrets.yml",
            "/workspace/lang/passwords.php",
            "/workspace/tests/fixtures/credentials.json",
            "/workspace/password_reset.txt.j2",
            "/workspace/emails/password_reset.hbs",
            "/workspace/de.lproj/password.strings",
        ] {
            assert_eq!(secret(path), None, "{path}");
        }
    }
}
