//! One provider's address, key and connection pool.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use portcullis_base::Clock;
use portcullis_secret::Redactor;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::redirect::Policy;

use super::fault::plain;
use super::read::read_answer;
use super::wait::retry_after;
use super::{Fault, HttpLimits, HttpSettings, ProviderMessage, Reader};
use crate::{Answer, DeltaSink, Failure, ModelError, ModelName};

/// What is read of an answer that is an error: enough for any message, not for a page that never ends.
const ERROR_BYTES: usize = 64 << 10;

/// The address of a provider and the header that carries its key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProviderAddress {
    /// Its own address, with the version in the path where the paths have none.
    pub base_url: &'static str,
    pub version: Version,
    /// The header that carries the key, and what stands before the key in it.
    pub key_header: (&'static str, &'static str),
    /// The variable that holds the key, for messages.
    pub key_variable: &'static str,
}

/// Where the version of an API, such as `/v1`, stands in addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Version {
    /// At the end of the base: it is added to an address without any path.
    InBase(&'static str),
    /// In the paths: it is taken off an address that ends with it, where a person wrote the same twice.
    InPaths(&'static str),
}

/// A client for one model.
pub(crate) struct HttpClient {
    model: ModelName,
    base: String,
    place: ProviderAddress,
    limits: HttpLimits,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    http: reqwest::Client,
}

impl HttpClient {
    /// Looks at address and key; sends nothing.
    pub fn new(model: &ModelName, place: ProviderAddress, settings: &HttpSettings) -> Result<Self, ModelError> {
        let config = |what: String| ModelError::new(Failure::Config, format!("{model}: {what}"));
        let given = settings.base_url.as_deref().unwrap_or(place.base_url);
        let base = base(given, place.version).map_err(config)?;
        let loopback = base.host_str().is_some_and(is_loopback);
        let plain = base.scheme() == "http";

        let mut headers = HeaderMap::new();
        let mut redactor = Redactor::none();
        if let Some(key) = &settings.key {
            let (name, before) = place.key_header;
            let key = key.expose().trim();
            let unfit = |_| config(format!("the key in {} holds characters that no key can have", place.key_variable));
            let mut value = HeaderValue::from_str(&format!("{before}{key}")).map_err(unfit)?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
            redactor = Redactor::new([key]).map_err(|error| config(error.to_string()))?;
        }

        // reqwest panics without one. The binary installs it; a library that did could only do it wrong for others.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(config(
                "no TLS provider is installed: call rustls::crypto::ring::default_provider().install_default() once at start"
                    .to_owned(),
            ));
        }
        let mut http = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(settings.limits.connect)
            .tcp_nodelay(true)
            // A key goes to the address that a person wrote, and nowhere else.
            .redirect(Policy::none());
        if loopback {
            http = http.no_proxy();
        }
        if plain {
            // No certificate is ever looked at, so none need be loaded.
            http = http.tls_certs_only(std::iter::empty());
        }
        let http = http.build().map_err(|error| config(format!("no HTTP client can be made: {}", reason(error))))?;
        Ok(Self {
            model: model.clone(),
            base: base.as_str().trim_end_matches('/').to_owned(),
            place,
            limits: settings.limits,
            clock: Arc::clone(&settings.clock),
            redactor,
            http,
        })
    }

    /// Sends a body and reads the answer, streamed or whole.
    pub async fn ask(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
        reader: Box<dyn Reader>,
        heard: DeltaSink<'_>,
    ) -> Result<Answer, ModelError> {
        let exchange = async {
            let request = self.http.post(format!("{}{path}", self.base));
            let request = request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream");
            let response = self.send(request.headers(headers).body(body)).await?;
            let bytes = response.bytes_stream().map(|bytes| bytes.map_err(reason));
            read_answer(Box::pin(bytes), self.limits, reader, heard).await
        };
        exchange.await.map_err(|fault| self.error(fault))
    }

    /// The address that paths are added to.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Asks for a JSON document, such as the list of models.
    pub async fn get(&self, path: &str) -> Result<serde_json::Value, ModelError> {
        let exchange = async {
            let response = self.send(self.http.get(format!("{}{path}", self.base))).await?;
            let body = self.body(response, self.limits.answer_bytes).await?;
            serde_json::from_slice(&body).map_err(|error| Fault::invalid(format!("the answer is not JSON ({error})")))
        };
        exchange.await.map_err(|fault| self.error(fault))
    }

    /// An error of this model.
    pub fn error(&self, fault: Fault) -> ModelError {
        fault.into_error(&self.model, self.place.key_variable, &self.redactor)
    }

    /// Words of a provider as they may be shown: short, and without the key.
    pub fn shown(&self, words: &str) -> String {
        plain(&self.redactor.redact_text(words))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, Fault> {
        let sent = tokio::time::timeout(self.limits.idle, request.send()).await;
        let silence = |_| Fault::new(Failure::Timeout, format!("no answer came for {}", seconds(self.limits.idle)));
        let response = sent.map_err(silence)?.map_err(|error| self.unsent(error))?;
        let status = response.status().as_u16();
        if response.status().is_success() {
            return Ok(response);
        }
        let wait = retry_after(response.headers(), self.clock.now());
        if response.status().is_redirection() {
            // No key was meant for another host; its name is all that the message holds of it.
            let to = response.headers().get(LOCATION).and_then(|to| Url::parse(to.to_str().ok()?).ok());
            let to = to.and_then(|to| Some(format!(" to {}://{}", to.scheme(), to.host_str()?))).unwrap_or_default();
            let what = format!("the provider answers with a redirection{to} (HTTP {status}), which is not followed");
            return Err(Fault { status: Some(status), ..Fault::new(Failure::BadRequest, what) });
        }
        // A body that does not come tells no more than the status did.
        let body = self.body(response, ERROR_BYTES).await.unwrap_or_default();
        let said = ProviderMessage::of_body(&String::from_utf8_lossy(&body));
        let fault = said.fault(Some(status));
        Err(Fault { retry_after: wait.or_else(|| said.retry_delay()), ..fault })
    }

    /// A body up to a limit. Of an error the beginning is enough.
    async fn body(&self, response: reqwest::Response, limit: usize) -> Result<Vec<u8>, Fault> {
        let failed = !response.status().is_success();
        let mut bytes = response.bytes_stream();
        let mut body = Vec::new();
        loop {
            let next: Option<Result<Bytes, _>> = tokio::time::timeout(self.limits.idle, bytes.next())
                .await
                .map_err(|_| Fault::new(Failure::Timeout, format!("no byte came for {}", seconds(self.limits.idle))))?;
            match next {
                None => return Ok(body),
                Some(Err(_)) if failed => return Ok(body),
                Some(Err(error)) => return Err(Fault::new(Failure::CutOff, reason(error))),
                Some(Ok(piece)) => {
                    body.extend_from_slice(&piece);
                    if body.len() > limit {
                        if failed {
                            body.truncate(limit);
                            return Ok(body);
                        }
                        return Err(Fault::invalid(format!("the answer is longer than {limit} bytes")));
                    }
                }
            }
        }
    }

    fn unsent(&self, error: reqwest::Error) -> Fault {
        if error.is_builder() {
            return Fault::new(Failure::Config, format!("the request cannot be made: {}", reason(error)));
        }
        if error.is_timeout() {
            let limit = seconds(self.limits.connect);
            return Fault::new(Failure::Timeout, format!("no connection to {} within {limit}", self.base));
        }
        // One that stood and was closed by the other side is no matter of the address.
        let what = match error.is_connect() {
            true => format!("no connection to {}", self.base),
            false => format!("the connection to {} broke before an answer came", self.base),
        };
        Fault::new(Failure::Connection, format!("{what}: {}", reason(error)))
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("model", &self.model).field("base", &self.base).finish_non_exhaustive()
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// The innermost reasons, which name the cause (refused, unknown host, bad certificate), without the address.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut words: Vec<String> = Vec::new();
    let mut next: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = next {
        let word = error.to_string();
        // Some layers repeat what is below them.
        words.retain(|outer| !outer.contains(&word) || outer == &word);
        if words.last() != Some(&word) {
            words.push(word);
        }
        next = error.source();
    }
    words.join(": ")
}

/// The host of an address, if what is sent there can be read on the way.
pub(crate) fn read_by_others(url: &str) -> Option<String> {
    let url: Url = url.trim().parse().ok()?;
    let host = url.host_str()?;
    (url.scheme() == "http" && !is_loopback(host)).then(|| host.to_owned())
}

/// Whether an address is a service on the internet, and not a server on this machine or in the same network.
pub(crate) fn is_hosted(url: &str) -> bool {
    let Ok(url) = url.trim().parse::<Url>() else { return false };
    let Some(host) = url.host_str().map(|host| host.trim_end_matches('.')) else { return false };
    match host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>() {
        // Nobody reaches a hosted service by its number.
        Ok(_) => false,
        Err(_) => {
            const LOCAL_ENDINGS: &[&str] = &["localhost", "local", "lan", "internal", "home", "arpa", "test"];
            host.rsplit_once('.').is_some_and(|(_, ending)| !LOCAL_ENDINGS.contains(&ending))
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// An address as paths are added to it. What is wrong with it is said without repeating it: it may hold a password.
fn base(given: &str, version: Version) -> Result<Url, String> {
    let given = given.trim();
    let given = match version {
        Version::InBase(_) => given,
        Version::InPaths(version) => {
            let given = given.trim_end_matches('/');
            given.strip_suffix(version).unwrap_or(given)
        }
    };
    if !given.contains("://") {
        let meant = with_scheme(given).unwrap_or_else(|| "https://HOST/PATH".to_owned());
        return Err(format!("base_url must begin with http:// or https://, such as {meant}"));
    }
    let mut url: Url = given.parse().map_err(|error| format!("base_url is no address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("base_url begins with `{}:`; it takes http:// or https://", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("base_url holds a user or a password: give the key in its own setting".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("base_url has a `?` or a `#`: it takes only scheme, host, port and path".to_owned());
    }
    if let Version::InBase(version) = version
        && url.path() == "/"
    {
        url.set_path(version);
    }
    Ok(url)
}

/// What was meant by an address that lacks its beginning. Only what has a port is surely one, and no key in the wrong
/// place: that is not repeated.
fn with_scheme(given: &str) -> Option<String> {
    let url: Url = format!("http://{given}").parse().ok()?;
    let host = url.host_str()?;
    let bare =
        url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    // Without a dot, or all digits: a machine nearby.
    let near = !host.contains('.') || host.parse::<std::net::IpAddr>().is_ok();
    let scheme = if near { "http" } else { "https" };
    (bare && url.port().is_some()).then(|| format!("{scheme}://{given}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_on_the_internet_is_told_from_a_server_of_ones_own() {
        for url in ["https://gateway.example/v1", "https://api.vendor.ai", "http://proxy.company.com:4000/v1"] {
            assert!(is_hosted(url), "{url}");
        }
        for url in [
            "http://localhost:11434",
            "http://127.0.0.1:8080",
            "http://[::1]:1",
            "http://192.168.1.7/v1",
            "http://gpu:8000",
            "http://gpu.lan/v1",
            "https://box.local",
            "no address",
        ] {
            assert!(!is_hosted(url), "{url}");
        }
    }

    #[test]
    fn an_address_gets_the_version_it_lacks_and_shows_no_password() {
        let text =
            |given: &str| base(given, Version::InBase("/v1")).map(|url| url.as_str().trim_end_matches('/').to_owned());
        assert_eq!(text("http://localhost:11434"), Ok("http://localhost:11434/v1".to_owned()));
        assert_eq!(text("http://localhost:11434/"), Ok("http://localhost:11434/v1".to_owned()));
        assert_eq!(text(" https://host/api/v3/ "), Ok("https://host/api/v3".to_owned()));
        for given in ["https://me:hunter22@host/v1", "https://host/v1?key=hunter22", "ftp://hunter22", "hunter22"] {
            let error = text(given).expect_err(given);
            assert!(!error.contains("hunter22"), "{error}");
        }
        let cases = [
            ("127.0.0.1:9", "such as http://127.0.0.1:9"),
            ("localhost:11434/v1", "such as http://localhost:11434/v1"),
            ("[::1]:9", "such as http://[::1]:9"),
            ("llm.example.com:8443/v1", "such as https://llm.example.com:8443/v1"),
            ("api.example.com/v1", "such as https://HOST/PATH"),
            ("me:hunter22@host:80", "such as https://HOST/PATH"),
        ];
        for (given, meant) in cases {
            let error = text(given).expect_err(given);
            assert!(
                error.starts_with("base_url must begin with http:// or https://") && error.ends_with(meant),
                "{error}"
            );
        }
    }
}
