//! Random numbers that a printed seed brings back.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Whether the long counts are asked for.
pub fn soak() -> bool {
    std::env::var_os("PICKET_SOAK").is_some_and(|value| value != "0")
}

/// Dice (splitmix64) of one test.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice by `PICKET_SEED`, else by chance. The seed is printed: given again, it brings the same throws.
    pub fn of(test: &str) -> Self {
        let given = std::env::var("PICKET_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        println!("{test}: PICKET_SEED={seed}");
        Self(seed)
    }

    /// Dice by this seed.
    pub fn by(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `sides`, from 0.
    pub fn throw(&mut self, sides: u64) -> u64 {
        self.next() % sides.max(1)
    }

    /// A time below `most`, in whole milliseconds.
    pub fn time(&mut self, most: Duration) -> Duration {
        Duration::from_millis(self.throw(u64::try_from(most.as_millis()).unwrap_or(u64::MAX)))
    }
}
