//! The delay before rejected items are sent again.

use std::time::Duration;

/// The wait after the `attempt`th rejection (from one): between half and the whole of a step that doubles from
/// `shortest` to `longest`, and no less than what the server retry_after for.
pub(crate) fn wait(
    (shortest, longest): (Duration, Duration),
    attempt: u32,
    retry_after: Option<Duration>,
) -> Duration {
    let doubled = shortest.saturating_mul(1 << attempt.saturating_sub(1).min(20));
    let step = doubled.min(longest.max(shortest));
    let own = step / 2 + (step / 2).mul_f64(rand::random::<f64>());
    own.max(retry_after.unwrap_or_default())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_heed_the_server() {
        let ms = Duration::from_millis;
        for (attempt, step) in [(1, 10), (2, 20), (3, 40), (4, 50), (60, 50)] {
            let wait = wait((ms(10), ms(50)), attempt, None);
            assert!(wait >= ms(step) / 2 && wait <= ms(step), "{wait:?} for a step of {step} ms");
        }
        assert_eq!(wait((ms(10), ms(50)), 1, Some(ms(999))), ms(999));
    }
}
