//! Whether a pattern names something, or only happens to reach it: `**/.envrc` names `.envrc`, `/workspace/**` does not.
//!
//! A pattern names a file if it is exactly that path, or if one of its names stands for a name that tells what the file
//! is, and has the telling part (`.envrc`, or `.pem` of `*.pem`) in it letter for letter.

use std::collections::HashSet;

use portcullis_base::Risk;
use portcullis_contract::{AccessRequest, Resource, ResourceClass};
use portcullis_secret::file_names;

use crate::path::Segment;
use crate::subject::Subject;
use crate::{LaterPlace, PathPattern, ResourcePattern, glob, places};

/// One thing that a path is besides a file, and the names in it that tell so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathMeaning {
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
    /// The number of a name in the path, and the text that tells.
    pub(crate) signs: Vec<(usize, &'static str)>,
}

/// Why a resource needs a rule that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpecialResource {
    pub(crate) class: BuiltIn,
    path: String,
    hits: Vec<PathMeaning>,
}

/// The rules that are built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    RunsLater,
    Secrets,
}

impl BuiltIn {
    /// The name after [`RuleId::BUILT_IN`](crate::RuleId::BUILT_IN).
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::RunsLater => "runs_later",
            Self::Secrets => "secrets",
        }
    }
}

impl SpecialResource {
    /// What an access is about, if a rule must name it. By the path alone where that is enough, so that no tool can
    /// forget to say it.
    pub(crate) fn of(request: &AccessRequest, resource: &Resource, subject: &Subject) -> Option<Self> {
        let Subject::Path(path) = subject else { return None };
        let only_reads = request.risk.iter().all(|risk| *risk == Risk::Read);
        if let Some(ResourceClass::Secret(_)) = resource.class.as_ref().filter(|_| only_reads) {
            let told = file_names::telling_names(path);
            let hits = told
                .map(|(secret, signs)| PathMeaning { name: secret.pattern, why: secret.why, signs })
                .into_iter()
                .collect();
            return Some(Self { class: BuiltIn::Secrets, path: path.clone(), hits });
        }
        let writes = request.risk.iter().any(|risk| *risk != Risk::Read);
        let mut hits = if writes { places::hits(path) } else { Vec::new() };
        let told = match &resource.class {
            Some(ResourceClass::RunsLater(pattern)) if writes => LaterPlace::by_pattern(pattern),
            _ => None,
        };
        if let Some(place) = told.filter(|place| !hits.iter().any(|hit| hit.name == place.pattern)) {
            hits.push(places::hit_of(place, path));
        }
        (!hits.is_empty()).then(|| Self { class: BuiltIn::RunsLater, path: path.clone(), hits })
    }

    /// Whether an allow with this pattern covers it.
    pub(crate) fn is_named_by(&self, pattern: &ResourcePattern) -> bool {
        let ResourcePattern::Path(all) = pattern else { return false };
        let names = |pattern: &PathPattern| {
            pattern.matches(&self.path) && self.hits.iter().all(|hit| names(pattern, &self.path, hit))
        };
        all.iter().any(names)
    }

    /// What a person is told.
    pub(crate) fn said(&self) -> String {
        let Some(PathMeaning { name, why, .. }) = self.hits.first() else { return "it holds secrets".to_owned() };
        let name = name.trim_end_matches('/');
        match self.class {
            BuiltIn::RunsLater => {
                format!("`{name}` runs later outside of the sandbox ({why}), so only a rule that names it allows this")
            }
            BuiltIn::Secrets => format!(
                "{why}; what is shown of it goes to the model and its provider, so only a rule that names it allows this unasked"
            ),
        }
    }
}

fn names(pattern: &PathPattern, path: &str, hit: &PathMeaning) -> bool {
    if pattern.anchor().1 {
        return true;
    }
    let path: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let telling = |tokens: &[glob::Token], at: usize| {
        let mut signs = hit.signs.iter().filter(|(place, _)| *place == at);
        signs.any(|(_, sign)| glob::literal_runs(tokens).any(|run| run.to_lowercase().contains(sign)))
    };
    // Every way in which the pattern can match the path: (segments used, names used, named so far).
    let segments = pattern.segments();
    let (mut seen, mut open) = (HashSet::new(), vec![(0, 0, false)]);
    while let Some(state @ (used, at, named)) = open.pop() {
        if !seen.insert(state) {
            continue;
        }
        match (segments.get(used), path.get(at)) {
            (None, None) if named => return true,
            (Some(Segment::Deep), there) => {
                open.push((used + 1, at, named));
                if there.is_some() {
                    open.push((used, at + 1, named));
                }
            }
            (Some(Segment::Name(tokens)), Some(name)) if glob::fits(tokens, name) => {
                open.push((used + 1, at + 1, named || telling(tokens, at)));
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use portcullis_base::RiskSet;
    use portcullis_contract::Action;

    use super::*;

    fn is_named(pattern: &str, path: &str) -> bool {
        let resource = Resource::path(path, path);
        let request = AccessRequest::new(Action::new("write"), resource.clone(), RiskSet::from([Risk::Write]));
        let classed = SpecialResource::of(&request, &resource, &Subject::of(&resource)).expect("it is a place");
        classed.is_named_by(&ResourcePattern::Path(vec![PathPattern::parse(pattern).expect("a pattern")]))
    }

    #[test]
    fn l31_a_place_that_only_the_tree_tells_is_named_by_its_own_names_too() {
        let class = ResourceClass::RunsLater(".git/hooks/".to_owned());
        let resource = Resource::path("/workspace/bare/hooks/update", "x").classed(Some(class));
        let request = AccessRequest::new(Action::new("write"), resource.clone(), RiskSet::from([Risk::Write]));
        let classed = SpecialResource::of(&request, &resource, &Subject::of(&resource)).expect("it is a place");
        let named = |text: &str| {
            classed.is_named_by(&ResourcePattern::Path(vec![PathPattern::parse(text).expect("a pattern")]))
        };
        assert!(named("bare/hooks/**") && named("/workspace/bare/hooks/update"));
        assert!(!named("/workspace/**") && !named("bare/**") && !named("**/update"));
    }

    #[test]
    fn l31_a_secret_is_named_by_what_tells_that_it_is_one() {
        let named = |pattern: &str, path: &str| {
            let resource = Resource::path(path, path).classed(Some(ResourceClass::Secret("x".to_owned())));
            let request = AccessRequest::new(Action::new("read"), resource.clone(), RiskSet::from([Risk::Read]));
            let classed = SpecialResource::of(&request, &resource, &Subject::of(&resource)).expect("it is a secret");
            classed.is_named_by(&ResourcePattern::Path(vec![PathPattern::parse(pattern).expect("a pattern")]))
        };
        for (pattern, path) in [
            ("**/.env", "/workspace/a/.env"),
            ("**/.env.*", "/workspace/.env.local"),
            ("**/*.pem", "/workspace/tls/a.pem"),
            ("tls/**/*.key", "/workspace/tls/a.key"),
            (".ssh/**", "/workspace/.ssh/id_rsa"),
            ("gha-creds-*.json", "/workspace/gha-creds-1.json"),
            ("/workspace/deploy/client_secret.json", "/workspace/deploy/client_secret.json"),
        ] {
            assert!(named(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/workspace/**", "/workspace/.env"),
            ("**/*.json", "/workspace/gha-creds-1.json"),
            ("tls/**", "/workspace/tls/a.pem"),
            (".e*", "/workspace/.env"),
            ("**/.*", "/workspace/.env"),
        ] {
            assert!(!named(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn l31_a_place_is_named_by_its_own_name_and_by_no_pattern_that_only_reaches_it() {
        for (pattern, path) in [
            ("**/.envrc", "/workspace/.envrc"),
            (".envrc", "/workspace/.envrc"),
            ("/workspace/a/.envrc", "/workspace/a/.envrc"),
            ("**/.github/**", "/workspace/.github/workflows/ci.yml"),
            ("**/workflows/*", "/workspace/.github/workflows/ci.yml"),
            ("**/.vscode/*", "/workspace/.vscode/tasks.json"),
            ("**/*.code-workspace", "/workspace/a.code-workspace"),
            ("**/.git/**", "/workspace/x/.git/hooks/pre-commit"),
            ("a/**/.npmrc", "/workspace/a/b/.npmrc"),
        ] {
            assert!(is_named(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/workspace/**", "/workspace/.envrc"),
            ("/**", "/workspace/.envrc"),
            ("*", "/workspace/.envrc"),
            (".*", "/workspace/.envrc"),
            (".e*", "/workspace/.envrc"),
            ("**/*rc", "/workspace/.npmrc"),
            ("a/**", "/workspace/a/.envrc"),
            ("**/tasks.json", "/workspace/.vscode/tasks.json"),
            // What lies in one place may be another.
            ("**/.vscode/**", "/workspace/.vscode/.envrc"),
            ("git/**", "/workspace/git/.config/git/config"),
            ("**/*.yml", "/workspace/.github/workflows/ci.yml"),
        ] {
            assert!(!is_named(pattern, path), "{pattern} {path}");
        }
    }
}
