//! Requests that are blocked, each by what its reason says.

use picket_core::budget::pause::PauseScope;
use picket_core::budget::{Budget, Quorum};
use picket_core::outcome::Reason as Stored;
use picket_engine::EngineError;
use picket_proto::exits::{Exit, Way};
use picket_proto::v1::Reason;

use super::nodes;
use crate::budget::{at_once, fleet, name, setup};
use crate::lab::{Lab, NODE, node, person, s};
use crate::queue::{end, wait};

/// A fence of `n1` was asked for and is blocked for that reason; what the way wants done before its commands is done.
pub async fn blocked(reason: Reason, way: &Way) -> Lab {
    match reason {
        Reason::Self_ => own_host().await,
        Reason::Quorum => quorum(way).await,
        Reason::Budget => busy().await,
        Reason::CoolDown => cool_down().await,
        Reason::Brake => brake().await,
        Reason::Paused => paused().await,
        Reason::Expired => expired().await,
        Reason::Withdrawn => withdrawn().await,
        Reason::Orphaned => nodes::orphaned(way).await,
        other => panic!("{other:?} blocks nothing"),
    }
}

async fn is_blocked(lab: &mut Lab, reason: Stored) {
    let call = lab.call();
    match lab.engine.fence(&node(), call).await {
        Err(EngineError::Barred(bar)) => assert_eq!(bar.reason(), reason),
        Err(EngineError::Blocked { reason: found, .. }) => assert_eq!(found, reason),
        other => panic!("{other:?}"),
    }
}

async fn own_host() -> Lab {
    let mut settings = setup(1, Budget::unlimited());
    settings.nodes[0].own_host = true;
    let mut lab = Lab::set_up(4001, settings, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc1");
    })
    .await;
    is_blocked(&mut lab, Stored::OwnHost).await;
    lab.kill().await;
    lab.setup.nodes[0].own_host = false;
    lab.start().await;
    lab
}

async fn quorum(way: &Way) -> Lab {
    let members = [("e1", Some(name(2))), ("e2", Some(node())), ("e3", None)];
    let members = members.into_iter().map(|(member, on)| (member.to_owned(), on)).collect();
    let mut lab = fleet(4002, 4, Budget { quorum: Quorum { members }, ..at_once(9) }).await;
    let call = lab.call();
    lab.engine.fence(&name(2), call).await.expect("two members are left");
    lab.reach_of(&name(2), "released", s(120)).await;
    is_blocked(&mut lab, Stored::Quorum).await;
    if way.exits == [Exit::Fence] {
        lab.engine.unfence(&name(2), "db".to_owned(), person()).await.expect("unfenced");
        lab.reach_of(&name(2), "normal", s(120)).await;
    }
    lab
}

async fn busy() -> Lab {
    let mut lab = fleet(4003, 3, at_once(1)).await;
    let call = lab.call();
    lab.engine.fence(&name(2), call).await.expect("let in");
    is_blocked(&mut lab, Stored::Budget).await;
    lab
}

async fn cool_down() -> Lab {
    let mut lab = fleet(4004, 2, Budget { cool_down: s(300), ..Budget::unlimited() }).await;
    lab.fence().await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
    is_blocked(&mut lab, Stored::CoolDown).await;
    lab
}

async fn brake() -> Lab {
    let mut lab = fleet(4005, 6, Budget { brake_percent: 50, brake_least: 3, ..at_once(9) }).await;
    for index in 2..=5 {
        let call = lab.call();
        drop(lab.engine.fence(&name(index), call).await);
    }
    is_blocked(&mut lab, Stored::Brake).await;
    lab
}

async fn paused() -> Lab {
    let mut lab = fleet(4006, 2, at_once(9)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(300)).await.expect("paused");
    is_blocked(&mut lab, Stored::Paused).await;
    lab
}

/// It waited for less than what barred it lasted.
async fn expired() -> Lab {
    let mut lab = fleet(4007, 2, at_once(9)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(30)).await.expect("paused");
    let call = lab.call();
    let waits = wait(&lab, &node(), call, Some(s(20))).await;
    tokio::time::sleep(s(40)).await;
    assert!(matches!(end(&waits), Some(Err(EngineError::Blocked { reason: Stored::Expired, .. }))));
    lab
}

async fn withdrawn() -> Lab {
    let mut lab = fleet(4008, 2, at_once(1)).await;
    let call = lab.call();
    lab.engine.fence(&name(2), call).await.expect("let in");
    let call = lab.call();
    let waits = wait(&lab, &node(), call, None).await;
    lab.engine.withdraw(&node(), "db", &person().into()).await.expect("withdrawn");
    assert!(matches!(end(&waits), Some(Err(EngineError::Blocked { reason: Stored::Withdrawn, .. }))));
    lab.reach_of(&name(2), "released", s(300)).await;
    lab
}
