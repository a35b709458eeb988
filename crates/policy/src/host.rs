//! Patterns over host names.

use std::fmt;

use crate::{PatternError, Specificity};

/// One host, or with a leading `*.` every host beneath one. `*.example.com` does not match
/// `example.com` itself: a wildcard certificate does not either.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPattern {
    name: String,
    beneath: bool,
}

/// `host` as it is compared: lower case, without port, brackets or final dot; `None` if it is no host.
pub(crate) fn canonical_host(host: &str) -> Option<String> {
    let bare = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            if !(port.is_empty() || is_port(port)) {
                return None;
            }
            address
        }
        // One colon is a port; more of them are an IPv6 address.
        None => match host.split_once(':') {
            Some((name, port)) if !port.contains(':') => {
                if !is_port(&format!(":{port}")) {
                    return None;
                }
                name
            }
            _ => host,
        },
    };
    let name = bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase();
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    let labels = name.contains(':') || name.split('.').all(|label| !label.is_empty());
    (name.bytes().all(good) && labels && !name.is_empty()).then_some(name)
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The host of an absolute URL; `None` if the URL can be read in more than one way.
pub(crate) fn host_of_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    // Programs disagree about backslashes and control characters in a URL.
    if scheme.is_empty() || !scheme.chars().all(plain) || url.contains(|c: char| c == '\\' || c.is_control()) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    canonical_host(host)
}

impl HostPattern {
    /// Reads `example.com` or `*.example.com`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let (rest, beneath) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let name = canonical_host(rest).ok_or(PatternError::Host)?;
        let ported = !rest.starts_with('[') && rest.matches(':').count() == 1 || rest.contains("]:");
        if ported {
            return Err(PatternError::Host);
        }
        Ok(Self { name, beneath })
    }

    pub(crate) fn exactly(name: &str) -> Self {
        Self { name: name.to_owned(), beneath: false }
    }

    /// Whether the canonical host `host` is one of those meant.
    pub(crate) fn matches(&self, host: &str) -> bool {
        if self.beneath {
            host.strip_suffix(self.name.as_str()).is_some_and(|head| head.ends_with('.'))
        } else {
            host == self.name
        }
    }

    /// The name every match is or lies beneath.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn specificity(&self) -> Specificity {
        let labels = self.name.split('.').count();
        Specificity::new(labels, self.name.chars().count(), !self.beneath)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.beneath { "*." } else { "" })?;
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_exact_or_beneath() {
        let exact = HostPattern::parse("Example.com").expect("a host");
        let beneath = HostPattern::parse("*.example.com").expect("a pattern");
        assert!(exact.matches("example.com") && !exact.matches("a.example.com"));
        assert!(beneath.matches("a.b.example.com") && !beneath.matches("example.com"));
        assert!(!beneath.matches("badexample.com"));
        for bad in ["", "*", "*.*.com", "a*b", "http://x", "x:80", "[::1]:80", "x/y", "bü.de", "a..b"] {
            assert!(HostPattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_url_has_one_host_or_none() {
        for (url, host) in [
            ("https://Example.COM./x", Some("example.com")),
            ("https://u:p@h.de:8443?q=@evil", Some("h.de")),
            ("http://[::1]:80/", Some("::1")),
            ("https://evil.com\\@good.com/", None),
            ("https://good.com\t.evil.com", None),
            ("https:///etc/passwd", None),
            ("/relative", None),
            ("https://h:port/", None),
        ] {
            assert_eq!(host_of_url(url).as_deref(), host, "{url}");
        }
    }
}
