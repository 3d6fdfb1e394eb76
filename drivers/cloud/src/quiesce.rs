//! Whether what was sent to an instance is over. A cloud has no session whose end would say so: it is asked until nothing is under way.

use std::time::Duration;

use picket_driver::{Call, DriverError, Effect, ErrorKind};
use tokio::time::{Instant, sleep};

/// Why what was sent may not be over yet, and after how long that is asked again.
#[derive(Debug)]
pub struct Pending {
    kind: ErrorKind,
    why: String,
    again: Duration,
}

impl Pending {
    /// Something may yet be done.
    pub fn under_way(why: impl Into<String>, again: Duration) -> Self {
        Self { kind: ErrorKind::TimedOut, why: why.into(), again }
    }

    /// It is not told whether it is over.
    pub fn untold(error: DriverError, again: Duration) -> Self {
        Self { kind: error.kind, why: error.detail, again }
    }

    /// Waits until it is asked again.
    ///
    /// # Errors
    /// The call ends before that: what was sent may yet be done (S5).
    pub async fn wait(self, call: &Call) -> Result<(), DriverError> {
        if Instant::now() + self.again >= call.deadline() {
            return Err(DriverError::new(self.kind, Effect::Unknown, self.why));
        }
        sleep(self.again).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fakes::SetClock;

    #[tokio::test(start_paused = true)]
    async fn it_is_asked_again_while_the_call_lasts() {
        let began = Instant::now();
        let call = Call::reading(began + Duration::from_secs(5), Arc::new(SetClock::at(0)));
        let pending = || Pending::under_way("a stop", Duration::from_secs(2));
        for seconds in [2, 4] {
            pending().wait(&call).await.expect("it lasts");
            assert_eq!(began.elapsed(), Duration::from_secs(seconds));
        }
        let error = pending().wait(&call).await.expect_err("it ends before that");
        assert_eq!(
            (error.kind, error.effect, error.detail.as_str()),
            (ErrorKind::TimedOut, Effect::Unknown, "a stop")
        );
        assert_eq!(began.elapsed(), Duration::from_secs(4));
        let untold = DriverError::new(ErrorKind::Forbidden, Effect::DidNotHappen, "no");
        let error = Pending::untold(untold, Duration::from_secs(1)).wait(&call).await.expect_err("the same");
        assert_eq!((error.kind, error.effect), (ErrorKind::Forbidden, Effect::Unknown));
    }
}
