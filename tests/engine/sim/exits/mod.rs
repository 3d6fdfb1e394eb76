//! S16: every reason names an exit that works. Each way of the table of `picket_proto::exits`, from which the command line makes its
//! words, is walked: the reason is brought about, what the way wants is done in the world, its commands are given, and the node
//! comes to where the way says.

mod nodes;
mod parents;
mod requests;
mod stood_down;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use picket_core::budget::pause::PauseScope;
use picket_core::device::{Grade, Identity};
use picket_core::event::Holder;
use picket_core::ids::{DeviceId, ReleaseId};
use picket_core::ledger::EffectKind;
use picket_core::outcome::Reason as Stored;
use picket_core::record::{Phase, SetAside};
use picket_engine::{Asides, FenceCall};
use picket_proto::exits::{self, Exit, Way};
use picket_proto::v1::{self, OutcomeKind, Reason};

use crate::lab::{Lab, budget_aside, node, person, s};

#[tokio::test(start_paused = true)]
async fn every_way_out_leads_where_it_says() {
    let mut wrong = Vec::new();
    for (kind, reason, ways) in exits::all() {
        for way in ways {
            let walked = AssertUnwindSafe(walk(kind, reason, way)).catch_unwind().await;
            if walked.is_err() {
                wrong.push(format!("{kind:?} {reason:?}: {way:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What a controller asks for besides is its own matter: the fence goes on asking for what its first caller wanted.
#[tokio::test(start_paused = true)]
async fn a_program_lowers_no_grade_that_others_asked_for() {
    let ways = exits::ways(OutcomeKind::NeedsOperator, Reason::GradeTooLow);
    let less = ways.iter().find(|way| way.exits == [Exit::FenceForLess]).expect("it is a way");
    let mut lab = nodes::waits(Reason::GradeTooLow, less).await;
    let call = lab.call();
    let call = FenceCall { min_grade: Some(Grade::Claimed), ..call };
    lab.engine.fence(&node(), call).await.expect("it joins");
    tokio::time::sleep(s(600)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Stored::GradeTooLow));
    assert_eq!(lab.attempts(), 0);
}

async fn walk(kind: OutcomeKind, reason: Reason, way: &Way) {
    match kind {
        OutcomeKind::NeedsOperator => go(nodes::waits(reason, way).await, kind, reason, way).await,
        OutcomeKind::Blocked => go(requests::blocked(reason, way).await, kind, reason, way).await,
        _ => {
            go(nodes::not_seen_on(way).await, kind, reason, way).await;
            go(stood_down::outlet_not_seen_on(way).await, kind, reason, way).await;
        }
    }
}

/// From where it is brought about to where the way says.
async fn go(mut lab: Lab, kind: OutcomeKind, reason: Reason, way: &Way) {
    for exit in way.exits {
        take(&mut lab, way, *exit).await;
    }
    let arrives = async {
        while !is_at(&lab, way.to) {
            tokio::time::sleep(s(1)).await;
        }
    };
    let arrived = tokio::time::timeout(s(3_600), arrives).await;
    assert!(arrived.is_ok(), "{kind:?} {reason:?}, {way:?}: it is {:#?}", lab.record());
    lab.kill().await;
}

/// Of an orphan that is retired nothing is shown any more.
fn is_at(lab: &Lab, phase: v1::Phase) -> bool {
    match lab.engine.node(&node()) {
        Ok(view) => {
            phase.as_str_name() == format!("PHASE_{}", view.stored.record.phase.label().to_uppercase())
        }
        Err(_) => phase == v1::Phase::Retired,
    }
}

/// Waits until the node asks a person for that reason.
async fn asks(lab: &Lab, reason: Stored) {
    lab.reach("needs_operator", s(3_600)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(reason));
}

async fn take(lab: &mut Lab, way: &Way, exit: Exit) {
    let engine = lab.engine.clone();
    match exit {
        Exit::Retry => drop(engine.retry(&node(), person()).await.expect("taken")),
        Exit::RetrySeenOff => drop(engine.retry_seen_off(&node(), person()).await.expect("taken")),
        Exit::Attest => drop(engine.attest(&node(), person()).await.expect("taken")),
        Exit::StandDown => drop(engine.stand_down(&node(), person()).await.expect("taken")),
        Exit::Retire => drop(engine.retire(&node(), person()).await.expect("taken")),
        Exit::DropRestored => drop(engine.drop_restored(&node(), person()).await.expect("taken")),
        Exit::EndChildsHold => {
            let holder = parents::HOLDER.to_owned();
            drop(engine.end_childs_hold(&node(), holder, person()).await.expect("taken"));
        }
        Exit::Abandon => {
            for release in in_the_way(lab, way) {
                engine.abandon(&node(), release, person()).await.expect("taken");
            }
        }
        Exit::AcceptIdentity => {
            let bmc = DeviceId::new("bmc").expect("a good name");
            engine.accept_identity(&node(), bmc, Identity::default(), person()).await.expect("taken");
        }
        Exit::Resume => {
            assert!(engine.resume(PauseScope::Node(node()), person()).await.expect("taken").pause)
        }
        Exit::ResumeEverything => {
            assert!(engine.resume(PauseScope::Everything, person()).await.expect("taken").brake);
        }
        Exit::Fence => fence(lab, |_| {}).await,
        Exit::FenceForLess => fence(lab, |call| call.min_grade = Some(Grade::Claimed)).await,
        Exit::OverrideBudget => {
            fence(lab, |call| call.set_aside = Some(budget_aside("it cannot wait"))).await;
        }
        Exit::OverrideQuorum => {
            let quorum = Some(SetAside { by: "ada".to_owned(), reason: "it cannot wait".to_owned() });
            fence(lab, |call| call.set_aside = Some(Asides { budget: None, quorum })).await;
        }
        Exit::Queue => {
            let call = by_person(lab);
            drop(engine.fence_or_wait(&node(), call, None).await.expect("let in"));
        }
    }
}

fn by_person(lab: &mut Lab) -> FenceCall {
    let call = lab.call();
    FenceCall { holder: Holder { by_person: true, ..call.holder.clone() }, ..call }
}

async fn fence(lab: &mut Lab, wish: impl FnOnce(&mut FenceCall)) {
    let mut call = by_person(lab);
    wish(&mut call);
    lab.engine.fence(&node(), call).await.expect("let in");
}

/// The releases that a person gives up before the rest of the way, as `picket status` names them.
fn in_the_way(lab: &Lab, way: &Way) -> Vec<ReleaseId> {
    let record = lab.record();
    if record.phase == Phase::NeedsOperator(Stored::UnboundedEffect) {
        let attempts = record.ledger.open().iter().filter(|open| open.life.is_none());
        let names = attempts.filter_map(|open| match &open.kind {
            EffectKind::Release(of) => Some(of.clone()),
            _ => None,
        });
        return names.collect();
    }
    let begun_alone = way.exits.contains(&Exit::StandDown) || lab.view().live.orphaned.is_some();
    let releases = record.fence.iter().flat_map(|fence| &fence.releases);
    let open = releases.filter(|one| !one.stage.is_over());
    let named = open.filter(|one| !begun_alone || one.attempts > 0 || one.unfinished);
    named.map(|one| one.id.clone()).collect()
}
