//! Devices that are a provider's interface: they give an off up by themselves, and their hold would bar their own node's releases.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::outcome::Outcome;
use picket_core::power::{Power, Reading};
use picket_driver::{Accepted, Call, DriverError, HoldFound, HoldReport, PowerDriver, Traits};
use picket_driver_sim::Fault;

use crate::lab::{Lab, NODE, s};
use crate::setup::Setup;

/// A device that is one.
#[derive(Debug)]
pub struct Cloud(pub Arc<dyn PowerDriver>);

#[async_trait]
impl PowerDriver for Cloud {
    fn traits(&self) -> &Traits {
        self.0.traits()
    }

    fn off_again(&self, power: Power) -> Option<Duration> {
        (power == Power::On).then_some(Duration::ZERO)
    }

    fn holds_late(&self) -> bool {
        true
    }

    async fn identify(&self, call: &Call) -> Result<Identity, DriverError> {
        self.0.identify(call).await
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        self.0.read_power(call).await
    }

    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.0.power_off(order, call).await
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.0.power_on(order, call).await
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        self.0.inspect_hold(call).await
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        self.0.engaged(now)
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        if !order.is_late() {
            return Ok(HoldReport { engaged: Vec::new(), detail: "once all is released".to_owned() });
        }
        self.0.engage_hold(order, call).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.0.disengage_hold(order, call).await
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        self.0.quiesce(call).await
    }
}

async fn cloud(seed: u64) -> Lab {
    let setup = Setup { clouds: true, ..Setup::new(NODE, &[&["nova"]]) };
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "nova");
    })
    .await
}

/// It took the off, gave it up and says so by On alone: it is told again, until it does it.
#[tokio::test(start_paused = true)]
async fn an_off_that_was_given_up_is_sent_again() {
    let mut lab = cloud(761).await;
    lab.fault("nova", Fault::OffIgnored);
    let fence = lab.open().await;
    tokio::time::sleep(s(20)).await;
    let told = lab.received("nova").offs;
    assert!((3..40).contains(&told), "again, and not without a pause: {told}");
    assert!(lab.is_on() && lab.attempts() == 0);
    lab.mend("nova");
    assert_eq!(lab.outcome(fence, picket_engine::Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(lab.falls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_would_bar_the_releases_is_engaged_once_they_are_over() {
    let mut lab = cloud(762).await;
    let free = lab.world.lock().expect("whole").hold(NODE);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("evidence");
    assert!(evidence.devices[0].hold.is_empty(), "until then the evidence says: hold: none");
    tokio::time::sleep(s(30)).await;
    let hold = lab.record().fence.expect("open").holds.into_values().next().expect("a hold");
    assert!(!hold.engaged.is_empty(), "{hold:?}");
    assert_ne!(lab.world.lock().expect("whole").hold(NODE), free);
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(300)).await;
    assert_eq!(lab.world.lock().expect("whole").hold(NODE).restore, free.restore, "put back as found");
}

/// What cannot be engaged at first is tried again, and another gateway does it, too.
#[tokio::test(start_paused = true)]
async fn a_late_hold_that_fails_is_tried_again() {
    let mut lab = cloud(763).await;
    lab.fault("nova", Fault::HoldIgnored);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(5)).await;
    lab.mend("nova");
    tokio::time::sleep(s(60)).await;
    let hold = lab.record().fence.expect("open").holds.into_values().next().expect("a hold");
    assert!(!hold.engaged.is_empty(), "{hold:?}");
}
