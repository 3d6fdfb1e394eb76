//! Keeping an instance off by EC2's own means (S11): a tag, and an IAM policy that denies to start what
//! bears it.
//!
//! # Invariants
//!
//! - An instance that is tagged when its fence begins is tagged by somebody else (another Picket, a
//!   person), and stays so. Our value says neither which gateway nor which fence, because many are tagged
//!   by one request. Shown by `a_tag_that_stood_before_stays_and_nobodys_value_is_written_over`.
//! - An instance is tagged right after a look. Shown by
//!   `who_tags_it_after_it_was_inspected_is_not_written_over`.

use std::time::Duration;

use picket_core::order::{HoldOrder, UnholdOrder};
use picket_driver::{Call, DriverError, Effect, HoldFound, HoldReport};

use crate::driver::AwsDriver;
use crate::instance::{OURS, TAG};

/// What was found: the tag's value, where it is somebody else's, and whether it is ours.
const THEIRS: &str = "tag";
const TAGGED: &str = "our_tag";
/// What was inspected so lately is not looked at again before it is tagged.
const JUST_NOW: Duration = Duration::from_secs(2);
/// So long after our tag was taken away EC2 may still show it, and IAM deny the start.
const LATE: Duration = Duration::from_secs(60);

fn holds() -> String {
    format!("tagged {TAG}")
}

/// What of a hold stands.
pub(crate) fn engaged(now: &HoldFound) -> Vec<String> {
    if stood_before(now) { vec![holds()] } else { Vec::new() }
}

fn stood_before(found: &HoldFound) -> bool {
    found.get(TAGGED).is_some_and(|tagged| tagged == "true")
}

impl AwsDriver {
    pub(crate) async fn inspect(&self, call: &Call) -> Result<HoldFound, DriverError> {
        if !self.settings.hold {
            return Ok(HoldFound::new());
        }
        let value = self.instance(call).await?.tags.remove(TAG);
        *self.inspected.lock() = Some(call.now());
        let is_ours = value.as_deref() == Some(OURS) && !self.lags(call);
        let mut found = HoldFound::from([(TAGGED.to_owned(), is_ours.to_string())]);
        if let Some(theirs) = value.filter(|value| value != OURS) {
            found.insert(THEIRS.to_owned(), theirs);
        }
        Ok(found)
    }

    /// Whether we took our tag away just now: what still shows it is late.
    pub(crate) fn lags(&self, call: &Call) -> bool {
        let untagged = *self.untagged.lock();
        untagged.is_some_and(|at| call.now().since(at) <= LATE)
    }

    pub(crate) async fn engage(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        let told = |engaged: Vec<String>, detail: String| Ok(HoldReport { engaged, detail });
        if !self.settings.hold {
            return told(Vec::new(), "hold = false in the settings".to_owned());
        }
        if let Some(theirs) = self.theirs(order, call).await? {
            return told(Vec::new(), format!("somebody else has tagged it {TAG}, with {theirs:?}"));
        }
        if stood_before(order.found()) {
            return told(vec![holds()], "it was tagged before, and stays so afterwards".to_owned());
        }
        self.mark(true, order.life(), call).await?;
        *self.untagged.lock() = None;
        told(vec![holds()], String::new())
    }

    /// The tag's value, where it is somebody else's now.
    async fn theirs(&self, order: &HoldOrder, call: &Call) -> Result<Option<String>, DriverError> {
        if let Some(theirs) = order.found().get(THEIRS) {
            return Ok(Some(theirs.clone()));
        }
        let inspected = *self.inspected.lock();
        if inspected.is_some_and(|at| call.now().since(at) <= JUST_NOW) {
            return Ok(None);
        }
        let looked = self.instance(call).await;
        let mut now = looked.map_err(|error| DriverError { effect: Effect::DidNotHappen, ..error })?;
        Ok(now.tags.remove(TAG).filter(|value| value != OURS))
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
        if stood_before(found) {
            let detail =
                format!("it was tagged {TAG} before its fence: by somebody else, who takes that away");
            return Ok(HoldReport { engaged: Vec::new(), detail });
        }
        self.mark(false, order.life(), call).await?;
        *self.untagged.lock() = Some(call.now());
        Ok(HoldReport::default())
    }

    async fn mark(&self, set: bool, life: Option<Duration>, call: &Call) -> Result<(), DriverError> {
        let signed = self.signed_anew(life, call).await?;
        let told = self.cloud.tag(set, &self.settings.instance, signed, &self.unclear, call).await;
        told.map(drop)
    }
}
