//! Several machines on one, and what goes wrong between them and it (S22).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::budget::pause::PauseScope;
use picket_core::ids::NodeId;
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::outcome::{Outcome, Reason};
use picket_core::parent::{Placement, hold_of};
use picket_core::power::Reading;
use picket_core::time::Clock;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver, Traits,
};
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{EngineError, ReceiptCall, Until};

use crate::lab::{Lab, NODE, person, s};
use crate::liveness::recovered;
use crate::observer::Answer;
use crate::setup::{NodeSetup, PARENT, Setup, named};

pub const HV: &str = "hv1";
pub const RELEASED: Outcome = Outcome::Fenced { released: true };

/// Whoever places a child, and takes its time to tell where it is.
#[derive(Debug)]
pub struct Places {
    pub inner: Arc<dyn PowerDriver>,
    pub takes: Duration,
    /// Its owner cannot be asked.
    pub away: Arc<AtomicBool>,
    /// Where it says that copies may be.
    pub copies: Arc<Mutex<Vec<String>>>,
    /// Whose names for machines it tells.
    pub cloud: Option<String>,
}

#[async_trait]
impl PowerDriver for Places {
    fn traits(&self) -> &Traits {
        self.inner.traits()
    }

    async fn placement(&self, call: &Call) -> Result<Placement, DriverError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(DriverError::new(ErrorKind::Unreachable, Effect::DidNotHappen, "it is away"));
        }
        let mut placement = self.inner.placement(call).await?;
        tokio::time::sleep(self.takes).await;
        placement.answered_at = call.now();
        placement.copies.clone_from(&self.copies.lock());
        Ok(placement)
    }

    async fn copies(&self, _call: &Call) -> Result<Vec<String>, DriverError> {
        Ok(self.copies.lock().clone())
    }

    fn cloud(&self) -> Option<String> {
        self.cloud.clone()
    }

    fn tells_placement(&self) -> bool {
        self.inner.tells_placement()
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        self.inner.identify(call).await
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        self.inner.read_power(call).await
    }

    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.inner.power_off(order, call).await
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.inner.power_on(order, call).await
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        self.inner.inspect_hold(call).await
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        self.inner.engaged(now)
    }

    fn outlives(&self, engaged: &str) -> bool {
        self.inner.outlives(engaged)
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.inner.engage_hold(order, call).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.inner.disengage_hold(order, call).await
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        self.inner.quiesce(call).await
    }
}

pub fn id(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

pub fn child(number: usize) -> String {
    if number == 1 { NODE.to_owned() } else { format!("n{number}") }
}

/// So many children of `hv1`, which has a BMC and, behind it, two outlets: each child's own device first, then its parent.
pub async fn family(seed: u64, children: usize, change: impl FnOnce(&mut Setup)) -> Lab {
    let mut setup = Setup::new(NODE, &[&["server"], &[PARENT]]);
    for number in 2..=children {
        let levels = named(&[&[&format!("server{number}")], &[PARENT]]);
        setup.nodes.push(NodeSetup { name: child(number), levels, own_host: false });
    }
    let levels = named(&[&["hv1-bmc"], &["hv1-a", "hv1-b"]]);
    setup.nodes.push(NodeSetup { name: HV.to_owned(), levels, own_host: false });
    change(&mut setup);
    Lab::set_up(seed, setup, |world| {
        world.add_machine("hv2");
        world.add_machine(NODE).add_host(NODE, "own-bmc");
        world
            .add_machine(HV)
            .add_host(HV, "hv1-agent")
            .add_host(HV, "hv1-bmc")
            .add_supply(HV, "hv1-a")
            .add_supply(HV, "hv1-b");
        for number in 1..=children {
            let server = if number == 1 { "server".to_owned() } else { format!("server{number}") };
            if number > 1 {
                world.add_machine(&child(number));
            }
            world.add_host(&child(number), &server);
            world.set_parent(&child(number), HV);
        }
    })
    .await
}

pub fn phase(lab: &Lab, name: &str) -> &'static str {
    lab.engine.node(&id(name)).expect("a node").stored.record.phase.label()
}

pub fn holds(lab: &Lab) -> Vec<String> {
    lab.engine.node(&id(HV)).expect("a node").stored.record.holds.keys().cloned().collect()
}

/// The children's own devices do nothing: the level is spent, and the parent is next.
pub fn deaf(lab: &Lab, children: usize) {
    lab.fault("server", Fault::OffRefused);
    (2..=children).for_each(|number| lab.fault(&format!("server{number}"), Fault::OffRefused));
}

pub async fn fence_all(lab: &mut Lab, children: usize) {
    for number in 1..=children {
        let mut call = lab.call();
        call.deadline = Some(s(1_800));
        lab.engine.fence(&id(&child(number)), call).await.expect("let in");
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_ran_on_a_machine_without_power_are_proven_by_it_side_by_side() {
    for (seed, placing) in [(731, 0), (732, 700)] {
        let mut lab = family(seed, 8, |setup| setup.placing = Duration::from_millis(placing)).await;
        deaf(&lab, 8);
        lab.fault("hv1-bmc", Fault::Silent);
        fence_all(&mut lab, 8).await;
        for number in 1..=8 {
            lab.reach_of(&id(&child(number)), "released", s(900)).await;
        }
        assert_eq!((phase(&lab, HV), holds(&lab).len()), ("released", 8));
    }
}

#[tokio::test(start_paused = true)]
async fn children_that_look_do_not_keep_their_parent_from_its_own_work() {
    let mut lab = family(733, 5, |_| {}).await;
    deaf(&lab, 5);
    // What it is to release is accepted and never done, and its BMC falls silent: it must find its outlets.
    lab.answers(&vec![Answer::Accept; 400]);
    let call = lab.call();
    lab.engine.fence(&id(HV), call).await.expect("let in");
    lab.reach_of(&id(HV), "fenced", s(300)).await;
    fence_all(&mut lab, 5).await;
    tokio::time::sleep(s(60)).await;
    lab.fault("hv1-bmc", Fault::Silent);
    let level = || async {
        loop {
            let record = lab.engine.node(&id(HV)).expect("a node").stored.record.clone();
            if record.fence.is_some_and(|fence| fence.evidence.is_some_and(|evidence| evidence.level == 2)) {
                return;
            }
            tokio::time::sleep(s(1)).await;
        }
    };
    tokio::time::timeout(s(300), level()).await.expect("proven by its outlets");
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_comes_to_its_second_level_late_still_proves_its_child() {
    let mut lab = family(734, 1, |_| {}).await;
    deaf(&lab, 1);
    lab.fault("hv1-bmc", Fault::OffRefused);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
}

#[tokio::test(start_paused = true)]
async fn whether_a_parent_recovered_is_not_asked_for_its_child() {
    let mut lab = family(735, 1, |setup| {
        setup.liveness = Some(recovered());
        setup.lives = Some(HV.to_owned());
    })
    .await;
    deaf(&lab, 1);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
    // Whoever fences it for itself is told.
    lab.unfence().await.expect("unfenced");
    lab.mend("server");
    lab.reach("normal", s(900)).await;
    lab.reach_of(&id(HV), "normal", s(900)).await;
    let call = lab.call();
    let fence = lab.engine.fence(&id(HV), call).await.expect("let in").fence();
    let view = lab.engine.node(&id(HV)).expect("a node");
    let outcome = lab.engine.outcome(&view, fence, Until::Released, None).await.expect("a store").1;
    assert_eq!(outcome, Some(Outcome::AbortedRecovered));
}

#[tokio::test(start_paused = true)]
async fn a_child_in_breach_fences_its_parent_through_a_pause_and_a_cool_down() {
    let mut lab = family(736, 1, |setup| setup.budget = picket_core::budget::Budget::default()).await;
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
    lab.engine.pause(PauseScope::Everything, person(), s(3_600)).await.expect("paused");
    deaf(&lab, 1);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(60)).await;
    lab.reach("released", s(600)).await;
    assert_eq!((phase(&lab, HV), holds(&lab)), ("released", vec!["child:n1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_parent_is_not_stood_down_under_its_child_and_a_retired_child_lets_it_go() {
    let mut lab = family(737, 1, |_| {}).await;
    deaf(&lab, 1);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
    // It is switched on, and neither its BMC nor its outlets do anything: a person is asked.
    for device in ["hv1-bmc", "hv1-a", "hv1-b"] {
        lab.fault(device, Fault::OffRefused);
    }
    lab.happen(Act::Foreign { machine: HV.to_owned(), verb: Verb::On });
    lab.reach_of(&id(HV), "needs_operator", s(1_800)).await;
    for asked in [lab.engine.stand_down(&id(HV), person()).await, lab.engine.retire(&id(HV), person()).await]
    {
        let Err(EngineError::Refused(refused)) = asked else { panic!("{asked:?}") };
        assert!(refused.to_string().contains("unfence the child, stand it down or retire it"), "{refused}");
    }
    lab.reach("needs_operator", s(1_800)).await;
    for device in ["hv1-bmc", "hv1-a", "hv1-b"] {
        lab.mend(device);
    }
    // It begins again by itself: a breach is never given up. Its child's fence is none, and waits for a person.
    lab.reach_of(&id(HV), "released", s(900)).await;
    lab.engine.retry(&id(NODE), person()).await.expect("asked again");
    lab.reach("released", s(900)).await;
    lab.engine.retire(&id(NODE), person()).await.expect("retired");
    lab.reach_of(&id(HV), "normal", s(900)).await;
    assert!(holds(&lab).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_child_asked_of_its_parent_and_did_not_wait_for_is_not_done_later() {
    let mut lab = family(738, 1, |setup| {
        setup.nodes[0].levels = named(&[&["server"], &[PARENT], &["own-bmc"]]);
    })
    .await;
    deaf(&lab, 1);
    // Its parent is fenced by somebody else, and its task waits for a device while it is asked.
    let call = lab.call();
    lab.engine.fence(&id(HV), call).await.expect("let in");
    lab.reach_of(&id(HV), "released", s(300)).await;
    lab.fault("hv1-bmc", Fault::Slow(s(4)));
    lab.fault("own-bmc", Fault::OffRefused);
    lab.open().await;
    while lab.record().fence.is_none_or(|fence| fence.level == 0) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(s(1)).await;
    // A person vouches for it meanwhile, and what it wants of its parent is dropped.
    lab.engine.attest(&id(NODE), person()).await.expect("attested");
    lab.reach("released", s(300)).await;
    ["hv1-bmc", "own-bmc", "server"].into_iter().for_each(|device| lab.mend(device));
    lab.unfence().await.expect("unfenced");
    tokio::time::sleep(s(100)).await;
    lab.reach_of(&id(HV), "released", s(300)).await;
    lab.engine.unfence(&id(HV), "db".to_owned(), person()).await.expect("unfenced");
    lab.reach("normal", s(1_800)).await;
    tokio::time::sleep(s(300)).await;
    assert_eq!((holds(&lab), phase(&lab, HV)), (Vec::new(), "normal"));
}

#[tokio::test(start_paused = true)]
async fn one_look_that_was_not_answered_before_its_leader_died_is_no_loss() {
    let mut lab = family(739, 1, |_| {}).await;
    deaf(&lab, 1);
    lab.open().await;
    lab.reach_of(&id(HV), "fenced", s(600)).await;
    // The outlets of its parent are asked in vain for a while, so that the child is not answered in time.
    lab.fault("hv1-bmc", Fault::Slow(s(30)));
    tokio::time::sleep(s(40)).await;
    lab.crash().await;
    lab.mend("hv1-bmc");
    lab.reach("released", s(900)).await;
    assert!(!lab.record().fence.expect("open").lost.contains(&device(PARENT)));
}

fn device(name: &str) -> picket_core::ids::DeviceId {
    picket_core::ids::DeviceId::new(name).expect("a good name")
}

#[tokio::test(start_paused = true)]
async fn the_gateway_knows_its_parent_in_the_first_moment_of_every_leadership() {
    for (seed, named) in [(740, true), (741, false)] {
        let mut lab = family(seed, 1, |setup| {
            setup.nodes[0].own_host = true;
            setup.only_parent = named.then(|| id(HV));
        })
        .await;
        let refused = {
            let call = lab.call();
            lab.engine.fence(&id(HV), call).await
        };
        match refused {
            Err(EngineError::Blocked { reason: Reason::OwnHost, .. }) if named => continue,
            // It is asked before anything is sent.
            Ok(_) if !named => lab.reach_of(&id(HV), "normal", s(60)).await,
            other => panic!("{other:?}"),
        }
        assert!(lab.is_on() && lab.received("hv1-bmc").offs == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_child_that_is_off_is_kept_off_whatever_its_parent_says() {
    let mut lab = family(742, 1, |_| {}).await;
    let backup = lab.backup().await;
    assert_eq!(lab.fence().await, RELEASED);
    lab.restore(&backup).await;
    lab.start().await;
    lab.reach("fenced", s(300)).await;
    assert!(lab.record().holds.contains_key("restored"), "{:?}", lab.record().holds);
}

/// S5, S19: what is open of a child keeps its parent off, also once that child was retired. Its receipt says that no on is sent before its end.
#[tokio::test(start_paused = true)]
async fn a_parent_stays_off_while_a_receipt_of_its_retired_child_holds() {
    let mut lab = family(2705, 1, |_| {}).await;
    deaf(&lab, 1);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
    let (by, audience) = ("db".to_owned(), "storage".to_owned());
    let receipt = ReceiptCall { by, audience, fence: None, renews: None };
    let receipt = lab.engine.receipt(&id(NODE), receipt).await.expect("proven off");
    let ends = lab.clock.boot() + receipt.lasts;
    lab.engine.retire(&id(NODE), person()).await.expect("retired");
    let asked = lab.engine.unfence(&id(HV), hold_of(&id(NODE)), person()).await;
    assert!(asked.is_err_and(|refused| refused.to_string().contains("once that has ended")));
    lab.reach_of(&id(HV), "normal", s(900)).await;
    let on = lab.world.lock().edges(HV, lab.clock.boot()).last().expect("it is on").at;
    assert!(on > ends, "on {:?} before the receipt's end", ends.since(on));
    assert!(on.since(ends) < s(60), "on {:?} after the receipt's end", on.since(ends));
}
