//! The kind `none`: for nodes whose volumes need no word from us.

use std::time::Duration;

use async_trait::async_trait;
use picket_answers::release::{Progress, ReleaseError, Subject};
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_reach::Settings;
use tokio::time::Instant;

use crate::pace::{ATTEMPT, Pace};
use crate::releaser::Releaser;

/// Completes at once; nothing is sent anywhere.
#[derive(Debug)]
pub struct Nothing {
    pace: Pace,
}

impl Nothing {
    pub(crate) fn read(settings: &mut Settings<'_>) -> Self {
        Self { pace: Pace::read(settings, ATTEMPT) }
    }
}

#[async_trait]
impl Releaser for Nothing {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        _permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        Ok(Progress::Complete("nothing to release".to_owned()))
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        Ok(Progress::Complete("nothing to release".to_owned()))
    }
}
