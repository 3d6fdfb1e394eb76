//! A token, and how long it serves. Each service compares a token's end with its own clock.

use std::time::Duration;

use picket_core::time::BootTime;
use picket_driver::Secret;

/// By how much a cloud's own clocks may differ.
pub const CLOCKS: Duration = Duration::from_secs(30);
/// A token that is younger than this was not revoked meanwhile.
const YOUNG: Duration = Duration::from_secs(10);

/// A token, with what was said beside it.
pub struct Token<Said = ()> {
    /// What each request bears.
    pub secret: Secret,
    /// What came with it.
    pub said: Said,
    /// What was left of its life when it was told.
    pub life: Duration,
    /// When it was asked for.
    pub asked_at: BootTime,
    /// When it was told.
    pub answered_at: BootTime,
}

impl<Said> std::fmt::Debug for Token<Said> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("life", &self.life).finish_non_exhaustive()
    }
}

impl<Said> Token<Said> {
    /// Whether it was got after that.
    pub fn is_newer_than(&self, moment: BootTime) -> bool {
        self.answered_at > moment
    }

    /// Whether it was given just now: each service knows it, or none will.
    pub fn is_young(&self, now: BootTime) -> bool {
        now.since(self.answered_at) < YOUNG
    }

    /// How long it serves at least.
    pub fn serves(&self, now: BootTime) -> Duration {
        self.life.saturating_sub(now.since(self.asked_at))
    }

    /// How long what carries it may still be taken: the services' clocks may be late.
    pub fn outlives(&self, now: BootTime) -> Duration {
        (self.life + CLOCKS).saturating_sub(now.since(self.answered_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_serves_shorter_than_it_may_be_taken() {
        let at = |seconds| BootTime::from_boot(Duration::from_secs(seconds));
        let (secret, life) = (Secret::new("hunter2"), Duration::from_secs(3_600));
        let token = Token { secret, said: (), life, asked_at: at(100), answered_at: at(103) };
        assert_eq!(token.serves(at(200)), Duration::from_secs(3_500));
        assert_eq!(token.outlives(at(203)), Duration::from_secs(3_500) + CLOCKS);
        assert_eq!((token.serves(at(5_000)), token.outlives(at(5_000))), (Duration::ZERO, Duration::ZERO));
        assert!(token.is_newer_than(at(102)) && !token.is_newer_than(at(103)));
        assert!(token.is_young(at(112)) && !token.is_young(at(113)));
        assert!(!format!("{token:?}").contains("hunter2"));
    }
}
