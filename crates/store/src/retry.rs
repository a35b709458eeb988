//! When a wake that failed is tried again, and when no more (store §6, agent-runtime 5.7): a pure rule.

use std::time::Duration;

use portcullis_base::Entropy;
use portcullis_base::limits::{GIVE_UP_PERMANENT, GIVE_UP_RETRYABLE, RETRY_FIRST, RETRY_JITTER_PERCENT, RETRY_LAST};

/// What kind of failure ended a wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It may pass: a timeout, a busy provider.
    Retryable,
    /// It will not pass by itself: wrong credentials, an answer that makes no sense.
    Permanent,
}

/// What comes after a failed wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextTry {
    After(Duration),
    /// The session goes idle with `retries_exhausted`; new input or a person starts it again.
    GiveUp,
}

/// The rule. `streak` = failures in a row before this one, as [`crate::Head::failure_streak`] counts them.
pub fn next_try(streak: u32, failure: Failure, entropy: &dyn Entropy) -> NextTry {
    let failures = streak.saturating_add(1);
    let most = match failure {
        Failure::Retryable => GIVE_UP_RETRYABLE,
        Failure::Permanent => GIVE_UP_PERMANENT,
    };
    if failures >= most {
        return NextTry::GiveUp;
    }
    let doubled = 2u32.checked_pow(streak).and_then(|times| RETRY_FIRST.checked_mul(times));
    NextTry::After(jittered(doubled.map_or(RETRY_LAST, |pause| pause.min(RETRY_LAST)), entropy))
}

/// Up to a fifth shorter or longer.
fn jittered(pause: Duration, entropy: &dyn Entropy) -> Duration {
    let mut random = [0; 8];
    entropy.fill(&mut random);
    let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
    let reach = micros / 100 * RETRY_JITTER_PERCENT;
    Duration::from_micros(micros - reach + u64::from_le_bytes(random) % (2 * reach + 1))
}

#[cfg(test)]
mod tests {
    use portcullis_base::SeededIds;

    use super::*;

    struct Fixed(u8);

    impl Entropy for Fixed {
        fn fill(&self, buf: &mut [u8]) {
            buf.fill(self.0);
        }
    }

    #[test]
    fn a_failed_wake_is_tried_again_after_2_4_8_16_and_30_seconds_and_then_no_more() {
        let entropy = SeededIds::new(3);
        let mut seen = Vec::new();
        for streak in 0..8 {
            let NextTry::After(pause) = next_try(streak, Failure::Retryable, &entropy) else { break };
            seen.push(pause.as_secs_f64());
        }
        let expected = [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0];
        assert_eq!(seen.len(), expected.len(), "the eighth failure is the last");
        for (pause, whole) in seen.iter().zip(expected) {
            assert!((0.8 * whole..=1.2 * whole).contains(pause), "{pause} s, not about {whole} s");
        }
        assert_ne!(next_try(3, Failure::Permanent, &entropy), NextTry::GiveUp);
        assert_eq!(next_try(4, Failure::Permanent, &entropy), NextTry::GiveUp, "the fifth");
        assert_eq!(next_try(u32::MAX, Failure::Retryable, &entropy), NextTry::GiveUp);
    }

    #[test]
    fn a_pause_is_never_more_than_a_fifth_off_and_really_differs() {
        let entropy = SeededIds::new(4);
        let pauses: Vec<Duration> = (0..500)
            .map(|_| match next_try(0, Failure::Retryable, &entropy) {
                NextTry::After(pause) => pause,
                NextTry::GiveUp => panic!("the first failure"),
            })
            .collect();
        let (least, most) = (pauses.iter().min().expect("some"), pauses.iter().max().expect("some"));
        assert!(*least >= Duration::from_millis(1_600) && *least < Duration::from_millis(1_620), "{least:?}");
        assert!(*most <= Duration::from_millis(2_400) && *most > Duration::from_millis(2_380), "{most:?}");
        assert_eq!(next_try(0, Failure::Retryable, &Fixed(0)), NextTry::After(Duration::from_millis(1_600)));
    }
}
