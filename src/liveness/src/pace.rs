//! How often a source is asked in one look, and how long that may take.

use std::time::Duration;

use picket_reach::Settings;

const TIMEOUT: Duration = Duration::from_secs(2);
const CONSECUTIVE: u64 = 2;
const INTERVAL: Duration = Duration::from_millis(250);
/// The off waits for a look, and its power reading serves for eight seconds.
const LONGEST: Duration = Duration::from_secs(5);

/// The pace of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// `timeout`: how long a whole look may take.
    pub(crate) timeout: Duration,
    /// `consecutive`: how often in a row it must say that the node recovered.
    pub(crate) consecutive: u64,
    /// `interval`: from one answer to the next question.
    pub(crate) interval: Duration,
}

impl Pace {
    pub(crate) fn read(settings: &mut Settings<'_>) -> Self {
        let milli = Duration::from_millis(1);
        let pace = Self {
            timeout: settings.duration("timeout", 100 * milli..=LONGEST).unwrap_or(TIMEOUT),
            consecutive: settings.number("consecutive", 1..=10).unwrap_or(CONSECUTIVE),
            interval: settings.duration("interval", 50 * milli..=LONGEST).unwrap_or(INTERVAL),
        };
        let waits = pace.interval * u32::try_from(pace.consecutive.saturating_sub(1)).unwrap_or(u32::MAX);
        if waits >= pace.timeout {
            let message = format!(
                "{} answers in a row, {:?} apart, do not fit into {:?}: the node could never be said to have \
                 recovered",
                pace.consecutive, pace.interval, pace.timeout
            );
            settings.fault("timeout", message);
        }
        pace
    }
}
