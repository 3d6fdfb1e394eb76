//! Keeping an instance off by EC2's own means (S11): a tag, and an IAM policy that denies to start what bears it.
//!
//! **Invariant.** A tag of ours alone is set and taken away; one with another value is somebody else's, and stays.

use std::sync::PoisonError;
use std::time::Duration;

use picket_core::order::{HoldOrder, UnholdOrder};
use picket_driver::{Call, DriverError, HoldFound, HoldReport};

use crate::driver::AwsDriver;
use crate::instance::{OURS, TAG};

/// What was found: the tag's value, where it is somebody else's, and whether it is ours.
const THEIRS: &str = "tag";
const TAGGED: &str = "our_tag";

fn holds() -> String {
    format!("tagged {TAG}")
}

/// What of a hold stands.
pub(crate) fn engaged(now: &HoldFound) -> Vec<String> {
    if now.get(TAGGED).is_some_and(|tagged| tagged == "true") { vec![holds()] } else { Vec::new() }
}

impl AwsDriver {
    pub(crate) async fn inspect(&self, call: &Call) -> Result<HoldFound, DriverError> {
        if !self.settings.hold {
            return Ok(HoldFound::new());
        }
        let instance = self.instance(call).await?;
        let value = instance.tags.get(TAG);
        let mut found =
            HoldFound::from([(TAGGED.to_owned(), value.is_some_and(|value| value == OURS).to_string())]);
        if let Some(theirs) = value.filter(|value| *value != OURS) {
            found.insert(THEIRS.to_owned(), theirs.clone());
        }
        Ok(found)
    }

    pub(crate) async fn engage(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        let told = |detail: String| Ok(HoldReport { engaged: Vec::new(), detail });
        if !self.settings.hold {
            return told("hold = false in the settings".to_owned());
        }
        if let Some(theirs) = order.found().get(THEIRS) {
            return told(format!("somebody else has tagged it {TAG}, with {theirs:?}"));
        }
        self.mark(true, order.life(), call).await?;
        Ok(HoldReport { engaged: vec![holds()], detail: String::new() })
    }

    pub(crate) async fn disengage(
        &self,
        order: &UnholdOrder,
        call: &Call,
    ) -> Result<HoldReport, DriverError> {
        let found = order.found();
        if !found.contains_key(TAGGED) || found.contains_key(THEIRS) {
            return Ok(HoldReport::default());
        }
        self.mark(false, order.life(), call).await?;
        *self.untagged.lock().unwrap_or_else(PoisonError::into_inner) = Some(call.now());
        Ok(HoldReport::default())
    }

    async fn mark(&self, set: bool, life: Option<Duration>, call: &Call) -> Result<(), DriverError> {
        let signed = self.signed_anew(life, call).await?;
        let told = self.cloud.tag(set, &self.settings.instance, signed, &self.unclear, call).await;
        told.map(drop)
    }
}
