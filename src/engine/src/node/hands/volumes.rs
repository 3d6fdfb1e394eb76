//! Calls about volumes: to the device that knows them, in its turn.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use picket_core::ground::ReleasePermit;
use picket_core::ids::DeviceId;
use picket_core::order::ReleaseOrder;
use picket_core::record::Part;
use picket_driver::{DriverError, Effect};
use picket_release::{Found, InParts, Progress, ReleaseError, Releaser};

use super::Hands;
use super::turns::Turns;
use crate::node::telling::Asking;
use crate::units::Turn;

/// A turn at what the device shares, taken before the permit is.
pub(in crate::node) type DetachTurn = Turns<Option<Turn>>;

impl Hands {
    /// What is attached now.
    pub(in crate::node) fn survey(
        &self,
        releaser: &Arc<dyn Releaser>,
        time: Duration,
    ) -> BoxFuture<'static, Result<Found, ReleaseError>> {
        let (hands, releaser) = (self.clone(), releaser.clone());
        Box::pin(async move {
            let Some(parts) = releaser.in_parts() else { return Err(no_parts()) };
            let asking = hands.ask(parts.device(), "what volumes are attached");
            let result = match hands.ready_to_run(parts.device(), time).await {
                Ok((_, call, turns)) => {
                    flat(turns.bounded(time, async { Ok(parts.survey(&call).await) }).await)
                }
                Err(error) => Err(failed(error)),
            };
            told(asking, &result, |found| {
                format!("{} to go, {} to stay", found.parts.len(), found.stays.len())
            });
            result
        })
    }

    /// How far a part is.
    pub(in crate::node) fn standing(
        &self,
        releaser: &Arc<dyn Releaser>,
        part: Part,
        time: Duration,
    ) -> BoxFuture<'static, Result<Progress, ReleaseError>> {
        let (hands, releaser) = (self.clone(), releaser.clone());
        Box::pin(async move {
            let Some(parts) = releaser.in_parts() else { return Err(no_parts()) };
            let asking = hands.ask(parts.device(), "how far is a volume");
            let result = match hands.ready_to_run(parts.device(), time).await {
                Ok((_, call, turns)) => {
                    flat(turns.bounded(time, async { Ok(parts.observe(&part, &call).await) }).await)
                }
                Err(error) => Err(failed(error)),
            };
            told(asking, &result, |progress| format!("{part}: {}", progress.words()));
            result
        })
    }

    /// The turn in which a part will be let go.
    pub(in crate::node) async fn turn_to_detach(&self, device: &DeviceId) -> Result<DetachTurn, DriverError> {
        let (_, _, turns) = self.ready_to_run(device, self.time(device)).await?;
        Ok(turns)
    }

    /// Lets one part go, at once: nothing comes between the permit and this.
    pub(in crate::node) async fn detach(
        &self,
        parts: &dyn InParts,
        (order, permit): (&ReleaseOrder, &ReleasePermit<'_>),
        (part, late): (&Part, bool),
        (turn, time): (DetachTurn, Duration),
    ) -> Result<Progress, ReleaseError> {
        let asking = self.ask(parts.device(), "let a volume go");
        let call = self.told(self.call(time), "permitted release");
        let sending = async { Ok(parts.attempt(order, permit, part, late, &call).await) };
        let result = flat(turn.bounded(time, sending).await);
        told(asking, &result, |progress| format!("{part}: {}", progress.words()));
        result
    }
}

fn no_parts() -> ReleaseError {
    ReleaseError::DidNotHappen("the release has no parts: a defect of the gateway".to_owned())
}

fn failed(error: DriverError) -> ReleaseError {
    match error.effect {
        Effect::DidNotHappen => ReleaseError::DidNotHappen(error.to_string()),
        Effect::Unknown => ReleaseError::Unknown(error.detail),
    }
}

fn flat<T>(result: Result<Result<T, ReleaseError>, DriverError>) -> Result<T, ReleaseError> {
    result.map_err(failed)?
}

fn told<T>(asking: Asking, result: &Result<T, ReleaseError>, words: impl FnOnce(&T) -> String) {
    let (label, words) = match result {
        Ok(answer) => ("ok", words(answer)),
        Err(
            error @ (ReleaseError::DidNotHappen(_) | ReleaseError::Barred(_) | ReleaseError::Replaced(_)),
        ) => ("refused", error.to_string()),
        Err(error @ ReleaseError::Unknown(_)) => ("unknown", error.to_string()),
    };
    asking.ended(label, words);
}
