//! A node that waits for a person, and that another one holds which runs on it.

use std::time::Duration;

use picket_core::outcome::Reason as Stored;
use picket_core::record::Phase;
use picket_driver_sim::Fault;
use picket_engine::FenceCall;
use picket_proto::exits::{self, Exit};
use picket_proto::v1::{OutcomeKind, Reason};

use super::{asks, go, take};
use crate::families::id;
use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::{NodeSetup, PARENT, Setup, named};

/// What runs on the node.
const CHILD: &str = "vm1";
pub const HOLDER: &str = "child:vm1";

/// What the child's own level has before its parent's turn comes, but for a moment.
const SHARE: Duration = Duration::from_secs(290);

/// Whatever the node waits for.
#[tokio::test(start_paused = true)]
async fn the_hold_that_bars_a_stand_down_or_a_retirement_is_ended_first() {
    let (kind, hold) = (OutcomeKind::NeedsOperator, &exits::KEPT_FOR);
    for (seed, reason, last) in [
        (4119, Stored::LevelsSpent, Exit::StandDown),
        (4120, Stored::Deadline, Exit::StandDown),
        (4121, Stored::Deadline, Exit::Retire),
    ] {
        let mut lab = held(seed, reason).await;
        let engine = lab.engine.clone();
        let barred = match last {
            Exit::Retire => engine.retire(&node(), person()).await,
            _ => engine.stand_down(&node(), person()).await,
        };
        let barred = barred.expect_err("its child is kept off by it").to_string();
        assert!(barred.contains(Exit::EndChildsHold.command()), "{barred}");
        take(&mut lab, hold, Exit::EndChildsHold).await;
        let ended = async {
            while lab.record().holds.contains_key(HOLDER) {
                tokio::time::sleep(s(1)).await;
            }
        };
        tokio::time::timeout(s(60), ended).await.expect("nothing of its child relies on it");
        assert_eq!(lab.record().phase, Phase::NeedsOperator(reason), "it waits on");
        let ways = exits::ways(kind, Reason::Deadline);
        let way = ways.iter().find(|way| way.exits == [Exit::Abandon, last]).expect("it is a way");
        go(lab, kind, Reason::Deadline, way).await;
    }
}

/// Both are well: the child's own device refuses its off, and nothing comes of the node's.
pub async fn held(seed: u64, reason: Stored) -> Lab {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    let levels = named(&[&["server"], &[PARENT]]);
    setup.nodes.push(NodeSetup { name: CHILD.to_owned(), levels, own_host: false });
    let mut lab = Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
        world.add_machine(CHILD).add_host(CHILD, "server").set_parent(CHILD, NODE);
    })
    .await;
    lab.fault("server", Fault::OffRefused);
    lab.fault("bmc", Fault::OffIgnored);
    let call = lab.call();
    lab.engine.fence(&id(CHILD), call).await.expect("let in");
    tokio::time::sleep(SHARE).await;
    let call = lab.call();
    let deadline = (reason == Stored::Deadline).then(|| s(60));
    lab.engine.fence(&node(), FenceCall { deadline, ..call }).await.expect("let in");
    asks(&lab, reason).await;
    assert!(lab.record().holds.contains_key(HOLDER), "{:?}", lab.record().holds);
    lab
}
