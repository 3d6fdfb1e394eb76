//! Nodes that wait for a person, each with what its reason says.

use std::sync::Arc;

use picket_core::device::{Grade, Identity, MaxInFlight};
use picket_core::outcome::{Outcome, Reason as Stored};
use picket_driver_sim::{Fault, Verb};
use picket_engine::FenceCall;
use picket_proto::exits::{Exit, Way};
use picket_proto::v1::Reason;

use super::asks;
use crate::lab::{Answer, Lab, NODE, lab, node, person, s};
use crate::restarted::a_lying_bmc;
use crate::restored::{by_hand, was_fenced};
use crate::setup::Setup;
use crate::standing;

const VOUCHES: &[Exit] = &[Exit::Attest];
const STANDS_DOWN: &[Exit] = &[Exit::Abandon, Exit::StandDown];
pub const RETIRES: &[Exit] = &[Exit::Abandon, Exit::Retire];

/// The node waits for that reason, and what the way wants done before its commands is done.
pub async fn waits(reason: Reason, way: &Way) -> Lab {
    match reason {
        Reason::LevelsSpent => not_proven(4101, None, way).await,
        Reason::Deadline => not_proven(4102, Some(Stored::Deadline), way).await,
        Reason::BmcRestarted => bmc_restarted(way).await,
        Reason::Contradiction => contradiction(way).await,
        Reason::IdentityMismatch => identity_mismatch(way).await,
        Reason::GradeTooLow => grade_too_low(way).await,
        Reason::ReleaseDeadline => release_deadline(way).await,
        Reason::UnboundedEffect => unbounded_effect(way).await,
        Reason::Self_ => own_host(way).await,
        Reason::StandDownUnseen => stand_down_unseen(way).await,
        Reason::Orphaned => orphaned(way).await,
        Reason::Replaced => replaced(way).await,
        Reason::BeingDeleted => being_deleted().await,
        Reason::Restored => restored().await,
        other => panic!("no node waits for {other:?}"),
    }
}

/// Somebody pulls its plug; the BMC goes on to answer.
fn pulled(lab: &Lab) {
    lab.happen(by_hand(Verb::Off));
}

/// The machine burns with its BMC.
pub fn burns(lab: &Lab, devices: &[&str]) {
    pulled(lab);
    devices.iter().for_each(|device| lab.fault(device, Fault::Silent));
}

/// Its BMC was dead until its deadline, and is mended; by now a limit keeps the off of a new round from being sent.
async fn barred() -> Lab {
    let mut lab = lab(4118).await;
    lab.fault("bmc", Fault::Silent);
    let call = lab.call();
    lab.engine.fence(&node(), FenceCall { deadline: Some(s(60)), ..call }).await.expect("let in");
    lab.reach("needs_operator", s(300)).await;
    lab.mend("bmc");
    lab.setup.budget.fleet.min_not_fenced = Some(1);
    lab.reload().await.expect("changed");
    lab.engine.retry(&node(), person()).await.expect("taken");
    asks(&lab, Stored::Deadline).await;
    assert_eq!(lab.received("bmc").offs, 0);
    lab
}

/// The off is taken, and nothing comes of it.
async fn not_proven(seed: u64, reason: Option<Stored>, way: &Way) -> Lab {
    if way.exits.contains(&Exit::OverrideBudget) {
        return barred().await;
    }
    let mut lab = lab(seed).await;
    lab.fault("bmc", Fault::OffIgnored);
    let call = lab.call();
    let deadline = reason.map(|_| s(30));
    lab.engine.fence(&node(), FenceCall { deadline, ..call }).await.expect("let in");
    asks(&lab, reason.unwrap_or(Stored::LevelsSpent)).await;
    match way.exits {
        [Exit::Retry] => lab.mend("bmc"),
        VOUCHES => pulled(&lab),
        STANDS_DOWN => {}
        RETIRES => burns(&lab, &["bmc"]),
        other => panic!("{other:?}"),
    }
    lab
}

async fn bmc_restarted(way: &Way) -> Lab {
    let lab = a_lying_bmc(4103).await;
    match way.exits {
        [Exit::RetrySeenOff] | VOUCHES => pulled(&lab),
        STANDS_DOWN => {}
        RETIRES => burns(&lab, &["bmc"]),
        other => panic!("{other:?}"),
    }
    lab
}

/// One of its BMCs lies that it is off.
async fn contradiction(way: &Way) -> Lab {
    let mut lab = Lab::with(4104, &[&["bmc", "second"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
    })
    .await;
    lab.fault("bmc", Fault::OffLied);
    lab.fault("second", Fault::OffIgnored);
    lab.open().await;
    asks(&lab, Stored::Contradiction).await;
    match way.exits {
        [Exit::Retry] => ["bmc", "second"].iter().for_each(|device| lab.mend(device)),
        STANDS_DOWN => {}
        RETIRES => burns(&lab, &["bmc", "second"]),
        other => panic!("{other:?}"),
    }
    lab
}

fn stranger() -> Identity {
    let uuid = Identity::usable_uuid("00112233-4455-6677-8899-aabbccddeeff");
    Identity { uuid, serial: Some("x".to_owned()) }
}

/// A lab in which the settings give no identity.
async fn nameless(seed: u64, learns: bool) -> Lab {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.adjust = Arc::new(|spec| spec.identity = Identity::default());
    setup.check_at_start = learns;
    let lab = Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    tokio::time::sleep(s(5)).await;
    lab
}

async fn identity_mismatch(way: &Way) -> Lab {
    let is_accepted = way.exits.contains(&Exit::AcceptIdentity);
    let mut lab = if is_accepted { nameless(4105, true).await } else { lab(4106).await };
    lab.fault("bmc", Fault::SaysIdentity(stranger()));
    lab.open().await;
    asks(&lab, Stored::IdentityMismatch).await;
    match way.exits {
        [Exit::Retry] => {
            lab.setup.adjust = Arc::new(|spec| spec.identity = stranger());
            lab.crash().await;
        }
        [Exit::AcceptIdentity, Exit::Retry] | STANDS_DOWN => {}
        RETIRES => burns(&lab, &["bmc"]),
        other => panic!("{other:?}"),
    }
    lab
}

async fn grade_too_low(way: &Way) -> Lab {
    let mut lab = nameless(4107, false).await;
    let call = lab.call();
    let wanting = FenceCall { min_grade: Some(Grade::Observed), ..call };
    lab.engine.fence(&node(), wanting).await.expect("let in");
    asks(&lab, Stored::GradeTooLow).await;
    match way.exits {
        [Exit::Retry] => {
            lab.setup.adjust = Arc::new(|_| {});
            lab.crash().await;
        }
        [Exit::FenceForLess] | VOUCHES => {}
        RETIRES => burns(&lab, &["bmc"]),
        other => panic!("{other:?}"),
    }
    lab
}

async fn release_deadline(way: &Way) -> Lab {
    if way.when.starts_with("the release has left the settings") {
        return left_the_settings().await;
    }
    let mut lab = lab(4108).await;
    lab.answers(&[Answer::Refuse]);
    lab.open().await;
    asks(&lab, Stored::ReleaseDeadline).await;
    match way.exits {
        [Exit::Retry] => lab.answers(&[Answer::Complete]),
        [Exit::Abandon] => {}
        RETIRES => burns(&lab, &["bmc"]),
        other => panic!("{other:?}"),
    }
    lab
}

/// What its release set up stands, and nobody is there who could take it away.
async fn left_the_settings() -> Lab {
    let (mut lab, cluster) = standing::lab(4109, s(10_000)).await;
    lab.open().await;
    standing::until(&cluster, |state| state.stands).await;
    lab.kill().await;
    let whole = std::mem::take(&mut lab.setup.releases);
    lab.start().await;
    asks(&lab, Stored::ReleaseDeadline).await;
    lab.kill().await;
    lab.setup.releases = whole;
    cluster.state.lock().takes = s(1);
    lab.start().await;
    lab
}

/// What was sent is open when its gateway dies, and nothing bounds it.
async fn unbounded_effect(way: &Way) -> Lab {
    let mut lab = lab(4110).await;
    match way.exits {
        [Exit::Retry] => {
            lab.world.lock().set_sessionless("bmc");
            lab.setup.adjust = Arc::new(|spec| spec.max_in_flight = MaxInFlight { off: None, on: None });
        }
        [Exit::Abandon, Exit::Retry] => {
            *lab.observer.life.lock() = None;
            lab.answers(&[Answer::Unknown, Answer::Complete]);
        }
        other => panic!("{other:?}"),
    }
    lab.crash().await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.crash().await;
    lab.unfence().await.expect("unfenced");
    asks(&lab, Stored::UnboundedEffect).await;
    lab
}

/// The gateway stands on it, alone, and another one sent an off before.
async fn own_host(way: &Way) -> Lab {
    let mut lab = lab(4111).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.open().await;
    tokio::time::sleep(s(5)).await;
    lab.kill().await;
    lab.setup.nodes[0].own_host = true;
    lab.start().await;
    asks(&lab, Stored::OwnHost).await;
    match way.exits {
        [Exit::Retry] => {
            lab.mend("bmc");
            lab.kill().await;
            lab.setup.nodes[0].own_host = false;
            lab.start().await;
        }
        STANDS_DOWN => {}
        other => panic!("{other:?}"),
    }
    lab
}

async fn stand_down_unseen(way: &Way) -> Lab {
    let mut lab = lab(4112).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.open().await;
    asks(&lab, Stored::LevelsSpent).await;
    lab.mend("bmc");
    pulled(&lab);
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    asks(&lab, Stored::StandDownUnseen).await;
    match way.exits {
        [Exit::Fence] => {}
        [Exit::Retry] => lab.happen(by_hand(Verb::On)),
        RETIRES => burns(&lab, &["bmc"]),
        other => panic!("{other:?}"),
    }
    lab
}

/// It left the settings in the middle of a release.
pub async fn orphaned(way: &Way) -> Lab {
    let mut lab = lab(4113).await;
    lab.answers(&[Answer::Refuse]);
    lab.open().await;
    lab.reach("fenced", s(120)).await;
    tokio::time::sleep(s(10)).await;
    lab.kill().await;
    let whole = lab.setup.clone();
    lab.setup.nodes.clear();
    lab.start().await;
    assert!(lab.view().live.orphaned.is_some());
    let call = lab.call();
    let refused = lab.engine.fence(&node(), call).await.expect_err("it is nobody's");
    assert!(refused.to_string().contains("ORPHANED"), "{refused}");
    if way.exits.is_empty() {
        lab.answers(&[Answer::Complete]);
        lab.setup = whole;
        lab.reload().await.expect("reloaded");
    }
    lab
}

/// By its name another machine is found.
async fn replaced(way: &Way) -> Lab {
    let (mut lab, cluster) = standing::lab(4114, s(10_000)).await;
    lab.open().await;
    asks(&lab, Stored::ReleaseDeadline).await;
    cluster.state.lock().replaced = true;
    standing::until(&cluster, |state| !state.keeps_pods_away).await;
    tokio::time::sleep(s(1)).await;
    asks(&lab, Stored::Replaced).await;
    if way.exits == [Exit::Retry] {
        let mut state = cluster.state.lock();
        (state.replaced, state.takes) = (false, s(1));
    }
    lab
}

/// It is switched on by those who take it away.
async fn being_deleted() -> Lab {
    let (mut lab, cluster) = standing::lab(4115, s(600)).await;
    lab.open().await;
    standing::until(&cluster, |state| state.stands).await;
    cluster.state.lock().going = Some("its Machine is being deleted");
    lab.happen(by_hand(Verb::On));
    lab.reach("fencing", s(60)).await;
    standing::until(&cluster, |state| state.stands).await;
    lab.happen(by_hand(Verb::On));
    asks(&lab, Stored::BeingDeleted).await;
    cluster.state.lock().takes = s(1);
    lab
}

/// It was off at first, and is on since.
async fn restored() -> Lab {
    let mut lab = was_fenced(4116).await;
    lab.start().await;
    lab.reach("fenced", s(120)).await;
    lab.happen(by_hand(Verb::On));
    asks(&lab, Stored::Restored).await;
    lab
}

/// The on is taken, and nothing comes of it.
pub async fn not_seen_on(way: &Way) -> Lab {
    let mut lab = lab(4117).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.fault("bmc", Fault::OnDropped { times: 100 });
    lab.unfence().await.expect("unfenced");
    lab.reach("power_on_failed", s(1_000)).await;
    match way.exits {
        [Exit::Retry] => lab.mend("bmc"),
        [Exit::StandDown] => lab.happen(by_hand(Verb::On)),
        [Exit::Fence] => {}
        RETIRES => burns(&lab, &["bmc"]),
        other => panic!("{other:?}"),
    }
    lab
}
