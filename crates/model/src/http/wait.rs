//! How long a provider asks us to wait.

use std::time::Duration;

use portcullis_base::Timestamp;
use reqwest::header::HeaderMap;

/// A provider that asks for more than this has something else in mind than a pause.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the headers, the most exact one first.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let millis = || text("retry-after-ms").and_then(|text| seconds(text, 1_000.0));
    let plain = || text("retry-after").and_then(|text| seconds(text, 1.0).or_else(|| until(text, now)));
    // What is not used up need not be waited for. Where both are, the later one counts.
    let used_up = || {
        let resets = ["requests", "tokens"].into_iter().filter_map(|kind| {
            (text(&format!("x-ratelimit-remaining-{kind}"))? == "0").then_some(())?;
            units(text(&format!("x-ratelimit-reset-{kind}"))?)
        });
        resets.max()
    };
    millis().or_else(plain).or_else(used_up).map(|wait| wait.min(LONGEST))
}

fn seconds(text: &str, a_second: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse::<f64>().ok()? / a_second).ok()
}

/// An HTTP date.
fn until(text: &str, now: Timestamp) -> Option<Duration> {
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Timestamp::from_micros(at.as_microsecond()).since(now))
}

/// Such as `6m0s`, `1.5s`, `20ms`.
fn units(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let unit = rest[number..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| number + at);
        let a_second = match &rest[number..unit] {
            "ms" => 1_000.0,
            "s" => 1.0,
            "m" => 1.0 / 60.0,
            "h" => 1.0 / 3_600.0,
            _ => return None,
        };
        sum = sum.checked_add(seconds(&rest[..number], a_second)?)?;
        rest = &rest[unit..];
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(pairs: &'static [(&'static str, &'static str)]) -> Option<Duration> {
        let headers = pairs.iter().map(|(name, value)| {
            (reqwest::header::HeaderName::from_static(name), reqwest::header::HeaderValue::from_static(value))
        });
        // 2026-11-16T10:00:00Z
        retry_after(&headers.collect(), Timestamp::from_micros(1_794_823_200_000_000))
    }

    #[test]
    fn h34_every_way_to_ask_for_a_pause_is_read() {
        type Headers = &'static [(&'static str, &'static str)];
        let cases: &[(Headers, Option<u64>)] = &[
            (&[], None),
            (&[("retry-after", "7")], Some(7_000)),
            (&[("retry-after", "0.5")], Some(500)),
            (&[("retry-after-ms", "1250"), ("retry-after", "2")], Some(1_250)),
            (&[("retry-after", "Mon, 16 Nov 2026 10:00:30 GMT")], Some(30_000)),
            (&[("retry-after", "Mon, 16 Nov 2026 09:00:00 GMT")], Some(0)),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "1e300")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "9999999")], Some(86_400_000)),
            (&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6m0s")], Some(360_000)),
            (&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "20ms")], Some(20)),
            (&[("x-ratelimit-remaining-tokens", "9"), ("x-ratelimit-reset-tokens", "6m0s")], None),
            (&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6q")], None),
        ];
        for (headers, millis) in cases {
            assert_eq!(wait(headers), millis.map(Duration::from_millis), "{headers:?}");
        }
    }
}
