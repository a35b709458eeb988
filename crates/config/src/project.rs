//! Files of rules: a project's, with whether it is trusted, and any other by the layer that its place says it is of.

use std::path::Path;

use portcullis_policy::{EnterprisePolicy, Layer, Rule, RuleEffect};

use crate::error::{ConfigError, UnreadableFile};
use crate::files::{project_file, read, read_project};
use crate::home::Home;
use crate::trust::{self, UnreadableTrust};
use crate::user_file::{parse_project, parse_user_rules};

/// A project's rules, and whether the user trusts exactly this text of them.
#[derive(Debug, Clone, Default)]
pub struct ProjectRules {
    pub rules: Vec<Rule>,
    pub trusted: bool,
    /// Why nobody can tell whether it is: it is not, then.
    pub unreadable: Option<UnreadableTrust>,
}

impl ProjectRules {
    /// Those of a workspace; none if it has no file.
    pub fn load(home: &Home, workspace: &Path) -> Result<Self, ConfigError> {
        let path = project_file(workspace);
        let Some(text) = read_project(workspace)? else { return Ok(Self::default()) };
        let rules = parse_project(&text, &path.display().to_string())?;
        let file = path.canonicalize().unwrap_or(path);
        Ok(match trust::holds(home, &file, &text) {
            Ok(trusted) => Self { rules, trusted, unreadable: None },
            // Only an allow has any use for trust.
            Err(_) if rules.iter().all(|rule| rule.effect != RuleEffect::Allow) => Self { rules, ..Self::default() },
            Err(unreadable) => Self { rules, trusted: false, unreadable: Some(unreadable) },
        })
    }
}

/// The rules of any file, as the layer reads it that its place says it belongs to.
pub fn rules_of(path: &Path) -> Result<(Layer, String, Vec<Rule>), ConfigError> {
    let text = read(path)?.ok_or_else(|| UnreadableFile::absent(path))?;
    let name = path.display().to_string();
    if path == Path::new(EnterprisePolicy::PATH) {
        let rules = EnterprisePolicy::parse(&text, &name)?.rules().to_vec();
        return Ok((Layer::Enterprise, text, rules));
    }
    if std::path::absolute(path).is_ok_and(|path| path.ends_with(".portcullis/config.toml")) {
        let rules = parse_project(&text, &name)?;
        return Ok((Layer::Project, text, rules));
    }
    let rules = parse_user_rules(&text, &name)?;
    Ok((Layer::User, text, rules))
}
