//! Time behind one trait. Log time is wall time in microseconds; waits are measured on the
//! monotonic clock.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment in UTC, in microseconds since 1970. Text is RFC 3339 with six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// Why a text is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an RFC 3339 time such as 2026-04-10T11:00:00.000000Z")]
pub struct TimestampError(String);

impl Timestamp {
    /// A moment from microseconds since 1970.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970, as stored and hashed.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment `span` later, at most the last that RFC 3339 can say: what is written must be read again.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        let later = self.0.saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX));
        Self(later.min(jiff::Timestamp::MAX.as_second() * 1_000_000).max(self.0))
    }

    /// The text that documents for models hold: RFC 3339 with three decimals (agent-runtime 1.1).
    #[must_use]
    pub fn to_millis_text(self) -> String {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(at) => format!("{at:.3}"),
            Err(_) => self.to_string(),
        }
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(at) => write!(f, "{at:.6}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let far = |text: &str| {
            let micros = text.strip_suffix("us")?.parse().ok()?;
            // Only what has no other text.
            jiff::Timestamp::from_microsecond(micros).is_err().then_some(Self(micros))
        };
        match text.parse::<jiff::Timestamp>() {
            Ok(at) => Ok(Self(at.as_microsecond())),
            Err(_) => far(text).ok_or_else(|| TimestampError(text.chars().take(64).collect())),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Where time comes from. Libraries never ask the operating system themselves.
pub trait Clock: Send + Sync {
    /// Wall time. It may jump; nothing but labels and expiry rests on it.
    fn now(&self) -> Timestamp;
    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The operating system's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Starts counting monotonic time here.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "reading the clock is an effect; a Default would hide it")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_microsecond())
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    wall: AtomicI64,
    monotonic: AtomicI64,
}

impl ManualClock {
    /// Stands at `at`.
    #[must_use]
    pub fn new(at: Timestamp) -> Self {
        Self { wall: AtomicI64::new(at.0), monotonic: AtomicI64::new(0) }
    }

    /// Moves both clocks forward.
    pub fn advance(&self, span: Duration) {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 2);
        self.wall.fetch_add(micros, Ordering::SeqCst);
        self.monotonic.fetch_add(micros, Ordering::SeqCst);
    }

    /// Sets the wall clock, forwards or backwards, as an administrator or NTP would.
    pub fn jump_to(&self, at: Timestamp) {
        self.wall.store(at.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.monotonic.load(Ordering::SeqCst)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_every_microsecond() {
        let at = Timestamp::from_micros(1_775_818_800_000_001);
        assert_eq!(at.to_string(), "2026-04-10T11:00:00.000001Z");
        assert_eq!(at.to_string().parse(), Ok(at));
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[test]
    fn every_moment_that_is_written_is_read_again() {
        let now = Timestamp::from_micros(1_775_818_800_000_001);
        for far in [now.plus(Duration::MAX), now.plus(Duration::from_secs(8_000 * 366 * 86_400))] {
            assert!(far > now && far.to_string().starts_with("9999-"), "{far}");
            assert_eq!(far.to_string().parse(), Ok(far));
        }
        for micros in [i64::MIN, i64::MAX, -1, 0] {
            let at = Timestamp::from_micros(micros);
            assert_eq!(at.to_string().parse(), Ok(at));
        }
        assert!("5us".parse::<Timestamp>().is_err(), "one text for each moment");
    }

    #[test]
    fn a_jump_of_the_wall_clock_leaves_monotonic_time_alone() {
        let clock = ManualClock::new(Timestamp::from_micros(10));
        clock.advance(Duration::from_secs(1));
        clock.jump_to(Timestamp::from_micros(0));
        assert_eq!(clock.monotonic(), Duration::from_secs(1));
        assert_eq!(clock.now().as_micros(), 0);
    }
}
