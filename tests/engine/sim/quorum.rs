//! S17, K11: a fence that would cost the store its quorum, by the members that answer now.

use picket_core::budget::{Budget, Quorum};
use picket_core::outcome::Reason;
use picket_core::record::SetAside;
use picket_driver_sim::Fault;
use picket_engine::{Asides, EngineError, Planned};

use crate::budget::{at_once, fleet, name};
use crate::lab::{person, s};

/// `n2` and `n3` carry two of the store's three members.
fn carrying() -> Budget {
    let members = [("e1", Some(name(2))), ("e2", Some(name(3))), ("e3", None)];
    let members = members.into_iter().map(|(member, on)| (member.to_owned(), on)).collect();
    Budget { quorum: Quorum { members }, ..at_once(9) }
}

/// S17, K11: members fall silent, and answer again, after the fence was let in.
#[tokio::test(start_paused = true)]
async fn a_retry_goes_by_the_members_that_answer_now() {
    let mut lab = fleet(318, 4, carrying()).await;
    lab.fault("bmc2", Fault::Silent);
    let call = lab.call();
    let id = lab.engine.fence(&name(2), call).await.expect("two members are left").fence();
    lab.reach_of(&name(2), "needs_operator", s(900)).await;
    lab.mend("bmc2");
    lab.store.hears_nothing_of(&["e3"]);
    lab.engine.retry(&name(2), person()).await.expect("taken");
    tokio::time::sleep(s(60)).await;
    assert_eq!(lab.received("bmc2").offs, 0, "one of three members is left");
    let wait = lab.engine.node(&name(2)).expect("known").live.wait.clone().expect("it is said what for");
    assert!(wait.what.contains("n2 carries e1"), "{wait:?}");
    lab.store.hears_nothing_of(&[]);
    lab.reach_of(&name(2), "released", s(120)).await;
    assert!(lab.engine.get_fence(id).await.expect("a store").expect("kept").off_sent);
}

/// It was given for the members of then.
#[tokio::test(start_paused = true)]
async fn a_retry_goes_by_no_quorum_that_was_set_aside_before() {
    let mut lab = fleet(317, 4, carrying()).await;
    let call = lab.call();
    lab.engine.fence(&name(2), call).await.expect("two members are left");
    lab.fault("bmc3", Fault::Silent);
    let by = SetAside { by: "ada".to_owned(), reason: "its member is gone for good".to_owned() };
    let mut call = lab.call();
    call.set_aside = Some(Asides { budget: None, quorum: Some(by) });
    let third = lab.engine.fence(&name(3), call).await.expect("let in").fence();
    lab.reach_of(&name(3), "needs_operator", s(900)).await;
    lab.mend("bmc3");
    lab.engine.retry(&name(3), person()).await.expect("it waits for a person");
    tokio::time::sleep(s(120)).await;
    let fence = lab.engine.get_fence(third).await.expect("a store").expect("kept");
    assert!(!fence.off_sent, "{fence:?}");
}

/// S17: the store's quorum is set aside by its own name, and by no other: whoever sets a budget aside may not know what a node carries.
#[tokio::test(start_paused = true)]
async fn a_quorum_is_set_aside_by_its_own_name_alone() {
    let mut lab = fleet(315, 4, carrying()).await;
    let call = lab.call();
    lab.engine.fence(&name(2), call).await.expect("two members are left");
    let who = |reason: &str| Some(SetAside { by: "ada".to_owned(), reason: reason.to_owned() });
    for budget in [None, who("all is on fire")] {
        let mut call = lab.call();
        call.set_aside = Some(Asides { budget, quorum: None });
        let barred = lab.engine.fence(&name(3), call.clone()).await;
        assert!(
            matches!(&barred, Err(EngineError::Barred(bar)) if bar.reason() == Reason::Quorum),
            "{barred:?}"
        );
        let plan = lab.engine.plan(&name(3), call).await.expect("planned");
        assert!(matches!(plan.planned, Planned::Barred(_)), "{plan:?}");
    }
    let mut call = lab.call();
    call.set_aside = Some(Asides { budget: None, quorum: who("its member is gone for good") });
    let plan = lab.engine.plan(&name(3), call.clone()).await.expect("planned");
    assert!(matches!(&plan.planned, Planned::Opens(words) if words.contains("n3 carries e2")), "{plan:?}");
    let third = lab.engine.fence(&name(3), call).await.expect("let in").fence();
    tokio::time::sleep(s(120)).await;
    let fence = lab.engine.get_fence(third).await.expect("a store").expect("kept");
    assert!(fence.off_sent && fence.budget_override.is_none(), "its last look lets it go too: {fence:?}");
    let told = |words: &str| fence.moments.iter().any(|one| one.what.contains(words));
    assert!(
        told("the store's quorum was set aside by ada: its member is gone for good (n3 carries e2"),
        "{fence:?}"
    );
}
