//! Reading power, off and on.

use std::time::SystemTime;

use picket_cloud::EPOCH;
use picket_core::order::{OffOrder, OnOrder};
use picket_core::power::{Power, Reading};
use picket_driver::{Accepted, Call, DriverError, Effect, ErrorKind};

use crate::cloud::{BucketAccess, Change, Failure, Stamps, said};
use crate::driver::AwsDriver;
use crate::instance::{self, Instance};

/// What an instance says, as a reading has it.
fn power(instance: &Instance) -> Power {
    match instance.power() {
        instance::PowerStatus::On => Power::On,
        instance::PowerStatus::Off | instance::PowerStatus::Terminated => Power::Off,
        instance::PowerStatus::Unknown => Power::Unknown,
    }
}

impl AwsDriver {
    pub(crate) async fn reading(&self, call: &Call) -> Result<Reading, DriverError> {
        let seen = self.look(call).await?;
        let (power, said) = match &seen.found {
            Ok(instance) => (power(instance), instance.words()),
            // Not found is a word of its own, and none of power.
            Err(why) => (Power::Unknown, why.clone()),
        };
        Ok(Reading {
            power,
            asked_at: seen.asked_at,
            answered_at: seen.answered_at,
            epoch: Some(EPOCH),
            said,
            lowered_by: None,
        })
    }

    pub(crate) async fn off(&self, _order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        // A stop that comes late costs a machine that runs again, and no data: it is not held to what stands in the ledger.
        let signed = self.signed_anew(None, call).await?;
        match &self.settings.terminate {
            None => self.stop(signed, call).await,
            Some(deletes) => self.terminate(deletes, call).await,
        }
    }

    async fn stop(&self, signed: SystemTime, call: &Call) -> Result<Accepted, DriverError> {
        let told = self.cloud.stop(&self.settings.instance, signed, &self.unclear, call).await;
        let (outcome, failed) = match told {
            Ok(Ok((change, stamps))) => (self.took(&change, stamps, Power::Off), None),
            Ok(Err(failure)) => (Err(failure.clone().into_error()), Some(failure)),
            Err(error) => (Err(error), None),
        };
        match failed {
            Some(failure) if !failure.unclear && failure.kind == ErrorKind::Refused => {
                self.terminated_already(failure, call).await
            }
            _ => outcome,
        }
    }

    /// What was terminated refuses to be stopped, and is off already.
    pub(crate) async fn terminated_already(
        &self,
        failure: Failure,
        call: &Call,
    ) -> Result<Accepted, DriverError> {
        let error = failure.into_error();
        let Ok(seen) = self.look(call).await else { return Err(error) };
        match &seen.found {
            Ok(instance) if instance.power() == instance::PowerStatus::Terminated => Ok(Accepted {
                asked_at: seen.asked_at,
                answered_at: seen.answered_at,
                epoch: Some(EPOCH),
                already: true,
            }),
            _ => Err(error),
        }
    }

    pub(crate) async fn start(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        // What the ledger does not bound is bounded by the signature.
        let signed = self.signed(order.life(), order.checked_at(), call)?;
        let id = self.settings.instance.clone();
        let told = self
            .cloud
            .alone(
                "StartInstances",
                BucketAccess::Now,
                Some((signed, None, &self.unclear)),
                call,
                async move |client, config| {
                    let told = client
                        .start_instances()
                        .instance_ids(&id)
                        .customize()
                        .config_override(config)
                        .send()
                        .await;
                    let told = said(told)?;
                    Ok(Change::of(told.starting_instances).remove(&id))
                },
            )
            .await;
        match told {
            Ok(Ok((Some(change), stamps))) => self.took(&change, stamps, Power::On),
            Ok(Ok((None, _))) => Err(unnamed("StartInstances")),
            Ok(Err(failure)) => Err(self.denied(failure, call)),
            Err(error) => Err(error),
        }
    }

    /// A stop or a start was taken.
    fn took(&self, change: &Change, stamps: Stamps, makes: Power) -> Result<Accepted, DriverError> {
        *self.told.lock() = Some((stamps.answered_at, makes));
        accepted(change, stamps, if makes == Power::On { "running" } else { "stopped" })
    }

    /// A start that is denied right after our own untagging is asked for again: policies see tags late.
    fn denied(&self, failure: Failure, call: &Call) -> DriverError {
        let lags = self.lags(call);
        let error = failure.into_error();
        if error.kind == ErrorKind::Forbidden && error.effect == Effect::DidNotHappen && lags {
            let detail = format!(
                "{} (its tag was taken away just now, which IAM may not have seen yet)",
                error.detail
            );
            return DriverError { kind: ErrorKind::Throttled, detail, ..error };
        }
        error
    }
}

/// An answer that does not say what became of the instance.
pub(crate) fn unnamed(action: &str) -> DriverError {
    let detail = format!("{action}: the answer does not name the instance");
    DriverError::new(ErrorKind::Protocol, Effect::Unknown, detail)
}

/// A command was taken. `state`: in which it changes nothing.
pub(crate) fn accepted(change: &Change, stamps: Stamps, state: &str) -> Result<Accepted, DriverError> {
    let already = change.before.as_deref() == Some(state);
    Ok(Accepted { asked_at: stamps.asked_at, answered_at: stamps.answered_at, epoch: Some(EPOCH), already })
}
