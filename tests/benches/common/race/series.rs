//! Times of one contestant, and dice that can be thrown again.

use std::time::Duration;

/// Times, one a round.
#[derive(Clone, Debug, Default)]
pub struct Series(Vec<Duration>);

impl Series {
    /// One more.
    pub fn push(&mut self, time: Duration) {
        let at = self.0.partition_point(|other| *other <= time);
        self.0.insert(at, time);
    }

    /// The time that `share` of the rounds did not exceed (nearest rank); zero without rounds.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Half of the rounds took no longer.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// The best round.
    pub fn least(&self) -> Duration {
        self.0.first().copied().unwrap_or_default()
    }

    /// Rounds.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// How many times `other` this is.
pub fn ratio(this: Duration, other: Duration) -> f64 {
    this.as_secs_f64() / other.as_secs_f64().max(1e-9)
}

/// In milliseconds, with as many digits as mean something.
pub fn millis(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.2}") } else { format!("{ms:.1}") }
}

/// Dice with a seed (splitmix64).
#[derive(Debug)]
pub struct Dice(pub u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The numbers below `count`, in some order.
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, (self.roll() % (last as u64 + 1)) as usize);
        }
        order
    }
}
