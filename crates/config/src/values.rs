//! Values as people write them: sizes, times, addresses.

use std::time::Duration;

/// `2GiB`, `500MB`, `1024`.
pub fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a size such as 2GiB, 500MB or 4096");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ').len();
    let factor: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(bad()),
    };
    text[..digits].parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(bad)
}

/// `24h`, `15min`, `1h 30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    parsed.filter(|span| !span.is_zero()).ok_or_else(|| format!("`{text}` is not a time such as 24h or 15min"))
}

/// The same with days and weeks: `7d`, `2w`, `12h`.
pub fn span(text: &str) -> Result<Duration, String> {
    span_such_as(text, "7d, 12h or 2w")
}

/// The same where it is usually short.
pub fn short_span(text: &str) -> Result<Duration, String> {
    span_such_as(text, "30s, 10m or 2h")
}

fn span_such_as(text: &str, such: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is not a time such as {such}");
    let span: jiff::Span = text.parse().map_err(|_| bad())?;
    let whole = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok();
    whole.and_then(|span| Duration::try_from(span).ok()).filter(|span| !span.is_zero()).ok_or_else(bad)
}

/// The address of a collector.
pub fn collector(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest.map(|rest| rest.split('/').next().unwrap_or_default()) {
        Some(host) if host.contains('@') => {
            Err("an address must hold no password; set OTEL_EXPORTER_OTLP_HEADERS in the environment".to_owned())
        }
        Some(host) if !host.is_empty() && !text.contains(char::is_whitespace) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err(format!("`{text}` is not an address such as http://127.0.0.1:4318")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_as_people_write_them() {
        assert_eq!((size("2GiB"), size("4096"), size("1 MB")), (Ok(2 << 30), Ok(4096), Ok(1_000_000)));
        assert!(size("-1").is_err() && size("GiB").is_err() && size("99999999999GiB").is_err());
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(span("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert!(span("1 month").is_err() && span("-1d").is_err() && span("0d").is_err());
        for (said, time) in [("30s", 30), ("10m", 600), ("2h", 7_200), ("1d", 86_400)] {
            assert_eq!(short_span(said), Ok(Duration::from_secs(time)));
        }
        assert_eq!(short_span("abc"), Err("`abc` is not a time such as 30s, 10m or 2h".to_owned()));
        assert!(duration("-1h").is_err() && duration("0s").is_err());
    }

    #[test]
    fn an_address_of_a_collector_is_http_and_holds_no_password() {
        assert_eq!(collector("http://127.0.0.1:4318/").as_deref(), Ok("http://127.0.0.1:4318"));
        assert!(collector("https://collector.example/otlp").is_ok());
        for bad in ["127.0.0.1:4318", "grpc://x", "http://", "http:// x"] {
            assert!(collector(bad).is_err_and(|why| why.contains("http://127.0.0.1:4318")), "{bad}");
        }
        let why = collector("https://me:hunter2@collector.example").expect_err("a password");
        assert!(why.contains("OTEL_EXPORTER_OTLP_HEADERS") && !why.contains("hunter2"), "{why}");
    }
}
