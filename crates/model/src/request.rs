//! What is asked of a model, and the one trait that every model has.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;

use crate::advertised::advertised;
use crate::{Answer, Conversation, Delta, Failure, ModelError};

/// A model by provider and id, such as `anthropic/claude-sonnet-5`. A script is named by its file: `scripted:demo.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelName {
    pub provider: String,
    pub id: String,
}

/// The provider whose models are files.
pub(crate) const SCRIPTED: &str = "scripted";

impl FromStr for ModelName {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        // A file may have a `/` in its name.
        if let Some(file) =
            text.strip_prefix(SCRIPTED).and_then(|rest| rest.strip_prefix(':')).filter(|f| !f.is_empty())
        {
            return Ok(Self { provider: SCRIPTED.to_owned(), id: file.to_owned() });
        }
        match text.split_once('/') {
            Some((provider, id)) if !provider.is_empty() && !id.is_empty() => {
                Ok(Self { provider: provider.to_owned(), id: id.to_owned() })
            }
            _ => Err(ModelError::new(
                Failure::Config,
                format!(
                    "`{text}` names no model: it takes PROVIDER/MODEL, such as `anthropic/claude-sonnet-5`, or `scripted:FILE`"
                ),
            )),
        }
    }
}

impl ModelName {
    /// The id as it may be told outside of this machine: of a script its file, not where that lies.
    #[must_use]
    pub fn label(&self) -> &str {
        let file = (self.provider == SCRIPTED).then(|| self.id.rsplit('/').next()).flatten();
        file.unwrap_or(&self.id)
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = if self.provider == SCRIPTED { ':' } else { '/' };
        write!(f, "{}{between}{}", self.provider, self.id)
    }
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// As it is advertised: never stricter than what the runtime enforces.
    pub input_schema: serde_json::Value,
}

impl ToolSpec {
    /// A tool by its definition. Of its schema everything is shown that every known server takes.
    #[must_use]
    pub fn of(name: String, description: String, input_schema: &serde_json::Value) -> Self {
        Self { name, description, input_schema: advertised(input_schema) }
    }
}

/// One request.
#[derive(Debug)]
pub struct Request<'a> {
    pub system: &'a str,
    /// In the order of the menu; byte-stable while the menu is.
    pub tools: Arc<[ToolSpec]>,
    /// The last turn of a wake sums up: tools are shown still, and may not be called (agent-runtime 5.4, step 10).
    pub tools_off: bool,
    pub conversation: &'a Conversation,
    pub max_output_tokens: u32,
}

/// Hears an answer while it comes.
pub type DeltaSink<'a> = &'a (dyn Fn(Delta<'_>) + Send + Sync);

/// A model.
#[async_trait]
pub trait Model: Send + Sync {
    /// Which one.
    fn name(&self) -> &ModelName;

    /// The format it is spoken to in: opaque parts of an answer go back only to the same one.
    fn wire(&self) -> &'static str;

    /// How many tokens it can read at once; `None` if nobody knows.
    fn window(&self) -> Option<u64>;

    /// Whether these tools can be shown to it. Called before anything is sent.
    ///
    /// # Errors
    /// [`Failure::Unfit`], naming the tool and what is wrong with it.
    fn fits(&self, tools: &[ToolSpec]) -> Result<(), ModelError>;

    /// Asks, and hears the whole answer. Dropping the future breaks the request off.
    ///
    /// # Errors
    /// Whatever stood in the way; half an answer is [`Failure::CutOff`].
    async fn ask(&self, request: &Request<'_>, heard: DeltaSink<'_>) -> Result<Answer, ModelError>;
}
