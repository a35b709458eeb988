//! Which models a server has, and an error that names them when it does not know the one that was asked for.

use async_trait::async_trait;
use portcullis_base::edits;
use serde_json::Value;

use crate::http::{Fault, HttpClient};
use crate::{Answer, DeltaSink, Failure, HttpModel, Model, ModelError, ModelName, Request, ToolSpec};

/// How many choices an error names; a hosted provider has hundreds.
const NAMED: usize = 12;

/// Where a server lists its models.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing {
    pub path: &'static str,
    /// The field with the list, and the field of an element with the id.
    pub list: &'static str,
    pub id: &'static str,
    /// What stands before the id there.
    pub before_id: &'static str,
}

impl Listing {
    /// The ids, in the server's order.
    pub(crate) async fn ids(&self, http: &HttpClient) -> Result<Vec<String>, ModelError> {
        let answer = http.get(self.path).await?;
        let Some(list) = answer.get(self.list).and_then(Value::as_array) else {
            return Err(http.error(Fault::invalid(format!("the list of models has no `{}`", self.list))));
        };
        let ids = list.iter().filter_map(|entry| entry.get(self.id)?.as_str());
        Ok(ids.map(|id| id.strip_prefix(self.before_id).unwrap_or(id).to_owned()).collect())
    }
}

/// A model whose server can be asked for its choices. It is asked only when something went wrong.
pub(super) struct ListingModel {
    pub(super) model: HttpModel,
    pub(super) listing: Listing,
}

impl ListingModel {
    /// The same error, or a better one if the server does not have the model.
    async fn explain(&self, error: ModelError) -> ModelError {
        let name = self.model.name();
        // Not every server says 404 of a model that it does not have. But a server with one model takes any name, and
        // what it refuses with 400 may be anything: there its own words stay, and the list is a hint.
        let hint = error.status == Some(400);
        let unknown = error.status == Some(404) || (hint && speaks_of_model(&error.message, name));
        if error.failure != Failure::BadRequest || !unknown {
            return error;
        }
        let http = self.model.http();
        match self.listing.ids(http).await {
            Ok(ids) if !ids.is_empty() && !knows(&ids, &name.id) => {
                // The server wrote these names: they are shown as all that it says is, without the key.
                let what = format!("the server has no model `{}`; it has {}", name.id, named(&name.id, ids));
                if hint {
                    let message = format!("{} (a hint: {})", error.message, http.shown(&what));
                    return ModelError { message, ..error };
                }
                http.error(Fault { status: error.status, ..Fault::new(error.failure, what) })
            }
            _ => error,
        }
    }
}

/// Whether a server's own words are about which model was named. What stands around them is ours: the name before them,
/// and the advice after them.
fn speaks_of_model(message: &str, name: &ModelName) -> bool {
    const WORDS: &[&str] =
        &["not found", "not_found", "not exist", "not a valid", "invalid model", "invalid_model", "unknown", "no such"];
    let said = message.strip_prefix(&name.to_string()).unwrap_or(message);
    let said = said.rsplit_once("). ").map_or(said, |(said, _)| said).to_lowercase();
    said.contains("model") && WORDS.iter().any(|word| said.contains(word))
}

/// Whether a server that lists these ids knows this one. Ollama leaves out `:latest`.
fn knows(ids: &[String], id: &str) -> bool {
    ids.iter().any(|known| known == id || known.strip_suffix(":latest") == Some(id))
}

/// The choices for a person, the nearest first.
fn named(id: &str, mut ids: Vec<String>) -> String {
    // `llama3.3` means `llama3.3:latest` rather than some other short name.
    let bare = |known: &str| if id.contains(':') { known.len() } else { known.find(':').unwrap_or(known.len()) };
    ids.sort_by_cached_key(|known| edits(id, &known[..bare(known)]));
    let more = ids.len().saturating_sub(NAMED);
    ids.truncate(NAMED);
    let list: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", list.join(", "))
}

#[async_trait]
impl Model for ListingModel {
    fn name(&self) -> &ModelName {
        self.model.name()
    }

    fn wire(&self) -> &'static str {
        self.model.wire()
    }

    fn window(&self) -> Option<u64> {
        self.model.window()
    }

    fn fits(&self, tools: &[ToolSpec]) -> Result<(), ModelError> {
        self.model.fits(tools)
    }

    async fn ask(&self, request: &Request<'_>, heard: DeltaSink<'_>) -> Result<Answer, ModelError> {
        match self.model.ask(request, heard).await {
            Err(error) => Err(self.explain(error).await),
            answer => answer,
        }
    }
}
