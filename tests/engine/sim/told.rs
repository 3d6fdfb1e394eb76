//! S13 where the far side of a release says which machine is the node's: its word stands over what a device says of itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::{DeviceSpec, Identity, IdentityMatch};
use picket_core::ground::ReleasePermit;
use picket_core::ids::DeviceId;
use picket_core::order::ReleaseOrder;
use picket_core::outcome::{Outcome, Reason};
use picket_core::power::Power;
use picket_core::restore::Lives;
use picket_core::store::Store;
use picket_core::time::Clock;
use picket_driver_sim::{Fault, Verb, World};
use picket_engine::{Readiness, readiness};
use picket_release::{Left, Pace, Progress, Quarantine, ReleaseError, Releaser, Subject, Whose};
use tokio::time::Instant;

use crate::lab::{Lab, NODE, node, s};
use crate::restored::by_hand;
use crate::setup::Setup;

const OTHER: &str = "elsewhere";

/// It knows which machine has the node's name, as Kubernetes does.
#[derive(Debug, Default)]
struct Knows(
    Mutex<Option<Identity>>,
    Mutex<Vec<Power>>,
    Mutex<Vec<Arc<Lives>>>,
    /// Whom it met in the last fence, each time that it is asked to undo something of that.
    Mutex<Vec<Option<String>>>,
    /// What that waits for.
    Mutex<Option<String>>,
);

#[async_trait]
impl Releaser for Knows {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(s(10))
    }

    fn pace(&self) -> Pace {
        Pace::default()
    }

    fn quarantine(self: Arc<Self>) -> Option<Arc<dyn Quarantine>> {
        Some(self)
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        _permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        Ok(Progress::Complete("gone".to_owned()))
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        Ok(Progress::Complete("gone".to_owned()))
    }
}

#[async_trait]
impl Quarantine for Knows {
    fn lingers(&self) -> Duration {
        s(1)
    }

    async fn withdraw(&self, _whose: &Whose, _until: Instant) -> Result<(), ReleaseError> {
        Ok(())
    }

    fn reads(&self, power: Power) {
        self.1.lock().push(power);
    }

    fn serves(&self, store: &Arc<Lives>) {
        self.2.lock().push(store.clone());
    }

    async fn cordon(&self, _subject: &Subject, _until: Instant) -> Result<Option<String>, ReleaseError> {
        Ok(Some("whom it met".to_owned()))
    }

    fn recalls(&self) -> bool {
        true
    }

    async fn readmit(&self, left: &Left, _until: Instant) -> Result<Option<String>, ReleaseError> {
        self.3.lock().push(left.met_last.clone());
        Ok(self.4.lock().clone())
    }

    async fn machine(&self, _until: Instant) -> Option<(Identity, String)> {
        let known = self.0.lock().clone()?;
        Some((known, "the cluster".to_owned()))
    }
}

/// `n1` with these levels, of whose devices the settings say no identity, and another machine.
async fn lab(seed: u64, levels: &[&[&str]], build: impl FnOnce(&mut World)) -> (Lab, Arc<Knows>) {
    let knows = Arc::new(Knows::default());
    let mut setup = Setup::new(NODE, levels);
    setup.adjust = Arc::new(|spec: &mut DeviceSpec| spec.identity = Identity::default());
    setup.releases = vec![("cluster".to_owned(), knows.clone())];
    let lab = Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_machine(OTHER);
        build(world);
    })
    .await;
    (lab, knows)
}

fn uuid_of(lab: &Lab, machine: &str) -> Identity {
    let world = lab.world.lock();
    Identity { serial: None, ..world.identity(machine).clone() }
}

fn is_running(lab: &Lab, machine: &str) -> bool {
    let now = lab.clock.boot();
    lab.world.lock().truth(machine, now)
}

/// Its device is known to control another machine, and a fence switches nothing off.
async fn is_stopped(lab: &mut Lab, name: &str) {
    let device = DeviceId::new(name).expect("a good name");
    let view = lab.view();
    assert_eq!(view.live.devices[&device].identity_match, Some(IdentityMatch::Mismatch));
    let spec = view.plan.topology.device(&device).expect("known");
    let is = readiness(spec, &view.live.devices[&device], &view.stored.record.phase);
    assert_eq!(is, Readiness::NotReady);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::IdentityMismatch));
    assert_eq!(lab.received(name).offs, 0);
    assert!(is_running(lab, OTHER));
}

#[tokio::test(start_paused = true)]
async fn a_device_that_says_another_machine_than_the_cluster_switches_nothing_off() {
    for was_learned_before in [false, true] {
        let (mut lab, knows) = lab(950, &[&["bmc"]], |world| {
            world.add_host(OTHER, "bmc");
        })
        .await;
        if was_learned_before {
            lab.engine.check(&node()).await.expect("checked");
            assert_eq!(lab.record().learned.len(), 1);
        }
        *knows.0.lock() = Some(uuid_of(&lab, NODE));
        lab.engine.check(&node()).await.expect("checked");
        is_stopped(&mut lab, "bmc").await;
    }
}

/// The node moved to a new server, and its settings still lead to the old one.
#[tokio::test(start_paused = true)]
async fn nor_does_one_that_the_cluster_had_proven_and_says_otherwise_since() {
    let (mut lab, knows) = lab(951, &[&["bmc"]], |world| {
        world.add_host(OTHER, "bmc");
    })
    .await;
    *knows.0.lock() = Some(uuid_of(&lab, OTHER));
    lab.engine.check(&node()).await.expect("checked");
    assert_eq!(lab.record().identity_proofs.len(), 1, "it is proven");
    *knows.0.lock() = Some(uuid_of(&lab, NODE));
    lab.engine.check(&node()).await.expect("checked");
    // What it said stands also where the cluster says nothing any more.
    *knows.0.lock() = None;
    lab.engine.check(&node()).await.expect("checked");
    is_stopped(&mut lab, "bmc").await;
}

/// A new server registered under the node's name, was taken away, and the old one is back; or the board was exchanged as well.
#[tokio::test(start_paused = true)]
async fn what_the_cluster_and_the_device_both_say_is_right_again() {
    let (mut lab, knows) = lab(953, &[&["bmc"]], |world| {
        world.add_host(NODE, "bmc");
    })
    .await;
    for machine in [NODE, OTHER, NODE] {
        *knows.0.lock() = Some(uuid_of(&lab, machine));
        lab.engine.check(&node()).await.expect("checked");
        let device = DeviceId::new("bmc").expect("a good name");
        let expected = if machine == NODE { IdentityMatch::Match } else { IdentityMatch::Mismatch };
        assert_eq!(lab.view().live.devices[&device].identity_match, Some(expected));
    }
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
}

/// The address of a second device leads to a machine that is no node's.
#[tokio::test(start_paused = true)]
async fn of_two_devices_that_say_two_machines_the_second_is_not_learned() {
    let (mut lab, _) = lab(952, &[&["bmc"], &["second"]], |world| {
        world.add_host(NODE, "bmc").add_host(OTHER, "second");
        world.fault("second", Fault::Silent);
    })
    .await;
    lab.engine.check(&node()).await.expect("checked");
    lab.mend("second");
    lab.engine.check(&node()).await.expect("checked");
    assert_eq!(lab.record().learned.len(), 1);
    lab.fault("bmc", Fault::Silent);
    is_stopped(&mut lab, "second").await;
}

/// A far side whose machine lives, while the node's own is off, has another one (K1). One device of two says nothing of both.
#[tokio::test(start_paused = true)]
async fn releases_are_told_what_all_devices_read_at_a_check() {
    let (lab, knows) = lab(954, &[&["bmc"], &["second"]], |world| {
        world.add_host(NODE, "bmc").add_host(NODE, "second");
    })
    .await;
    let mut told = Vec::new();
    lab.engine.check(&node()).await.expect("checked");
    told.push(Power::On);
    lab.fault("second", Fault::Silent);
    lab.engine.check(&node()).await.expect("checked");
    told.push(Power::On);
    lab.happen(by_hand(Verb::Off));
    tokio::time::sleep(s(10)).await;
    lab.engine.check(&node()).await.expect("checked");
    told.push(Power::Unknown);
    lab.mend("second");
    lab.engine.check(&node()).await.expect("checked");
    told.push(Power::Off);
    assert_eq!(*knows.1.lock(), told);
}

/// What a gateway of another store notes at the far side is not its own (K7), and what one of an earlier life of this store noted is.
#[tokio::test(start_paused = true)]
async fn releases_are_told_which_store_the_gateway_serves() {
    let (mut lab, knows) = lab(955, &[&["bmc"]], |world| {
        world.add_host(NODE, "bmc");
    })
    .await;
    let mut before = BTreeSet::new();
    for _ in 0..3 {
        let now = lab.store.incarnation();
        let told = knows.2.lock().last().cloned().expect("it is told");
        assert_eq!(*told, Lives { now, before: before.clone() });
        before.insert(now);
        let file = lab.backup().await;
        lab.restore(&file).await;
        lab.start().await;
        lab.engine.check(&node()).await.expect("checked");
    }
}

/// A node that was fenced and is back, and what undoes that fence is under way.
async fn back(seed: u64) -> (Lab, Arc<Knows>) {
    let (mut lab, knows) = lab(seed, &[&["bmc"]], |world| {
        world.add_host(NODE, "bmc");
    })
    .await;
    *knows.4.lock() = Some("somebody else".to_owned());
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(is_told(&knows).iter().all(Option::is_none), "no fence was before it");
    lab.unfence().await.expect("its own");
    lab.reach("normal", s(300)).await;
    (lab, knows)
}

fn is_told(knows: &Knows) -> Vec<Option<String>> {
    std::mem::take(&mut *knows.3.lock())
}

/// So long after it the gateway ends, and another one leads; what that one tells releases of whom the last fence met.
async fn told_by_the_next(lab: &mut Lab, knows: &Knows, after: u64) -> Vec<Option<String>> {
    lab.kill().await;
    tokio::time::sleep(s(after)).await;
    is_told(knows);
    lab.start().await;
    tokio::time::sleep(s(60)).await;
    let mut told = is_told(knows);
    told.dedup();
    told
}

/// What undoes a fence once the node is back goes by whom that fence met, whoever leads by then (K1).
#[tokio::test(start_paused = true)]
async fn a_gateway_that_leads_once_a_node_is_back_tells_releases_whom_its_fence_met() {
    let (mut lab, knows) = back(956).await;
    let met = || vec![Some("whom it met".to_owned())];
    assert_eq!(told_by_the_next(&mut lab, &knows, 60).await, met());
    assert_eq!(told_by_the_next(&mut lab, &knows, 23 * 3600).await, met());
    assert_eq!(told_by_the_next(&mut lab, &knows, 2 * 3600).await, [None]);
}

/// What stands at the far side once it was undone was set up by somebody since.
#[tokio::test(start_paused = true)]
async fn what_was_undone_to_its_end_is_not_undone_again() {
    let (mut lab, knows) = back(957).await;
    for _ in 0..2 {
        let met = vec![Some("whom it met".to_owned())];
        assert_eq!(told_by_the_next(&mut lab, &knows, 60).await, met);
        *knows.4.lock() = None;
        tokio::time::sleep(s(60)).await;
        assert_eq!(told_by_the_next(&mut lab, &knows, 60).await, [None]);
        // After a later fence it is to be undone anew.
        *knows.4.lock() = Some("somebody else".to_owned());
        assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
        lab.unfence().await.expect("its own");
        lab.reach("normal", s(300)).await;
    }
}
