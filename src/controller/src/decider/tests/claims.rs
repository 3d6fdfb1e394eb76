//! A kubelet writes another machine's identity into its own status.

use super::super::*;
use super::scene::{Scene, policy};
use crate::settings::Select;

const UUID: &str = "4b554245-2d4e-4f44-452d-303030303031";

/// `n1` is dead, and `m1` is of the control plane and well.
fn scene(select: Select, change: impl Fn(&mut Scene)) -> Scene {
    let mut scene = Scene::new();
    scene.decider.select = select;
    change(&mut scene);
    scene.turn("n1", "False");
    scene
}

#[test]
fn an_identity_that_another_node_claims_is_nobody_s() {
    for swapped in [UUID, "4542554B-4E2D-444F-452D-303030303031", "31303030-3030-2d45-444f-4e2d4542554b"] {
        let claims = |scene: &mut Scene| {
            scene.node("n1").system_uuid = swapped.to_owned();
            scene.node("m1").system_uuid = UUID.to_owned();
        };
        let mut scene = scene(Select::SystemUuid, claims);
        assert_eq!(scene.run(300), [], "{swapped}");
        let claimed = SkipReason::Claimed { what: "system UUID", other: "m1".to_owned() };
        assert_eq!(scene.verdict("n1"), Verdict::Leave(claimed));
        let told = scene.report("workers").holding.expect("it is told");
        assert!(told.reason == "ClaimedIdentity" && told.message.contains("m1"), "{told:?}");
        // It was a lie, and is none any more.
        scene.node("n1").system_uuid = "11111111-2222-4333-8444-555555555555".to_owned();
        assert_eq!(scene.run(3).len(), 1);
    }
    let claims = |scene: &mut Scene| {
        ["n1", "m1"].iter().for_each(|name| scene.node(name).provider_id = "aws:///z/i-1".to_owned());
    };
    let mut both = scene(Select::ProviderId, claims);
    assert_eq!(both.run(300), []);
    let claimed = SkipReason::Claimed { what: "providerID", other: "m1".to_owned() };
    assert_eq!(both.verdict("n1"), Verdict::Leave(claimed));
    // By its name it is known all the same.
    assert_eq!(scene(Select::Name, claims).run(60).len(), 1);
}

/// What says nothing is no claim.
#[test]
fn nodes_that_say_nothing_of_their_machines_claim_nothing() {
    for nothing in ["", "test", "00000000-0000-0000-0000-000000000000"] {
        let say = |scene: &mut Scene| {
            ["n1", "n2", "m1"].iter().for_each(|name| scene.node(name).system_uuid = nothing.to_owned());
        };
        assert_eq!(scene(Select::SystemUuid, say).run(60).len(), 1, "{nothing:?}");
    }
    assert_eq!(scene(Select::ProviderId, |_| {}).run(60).len(), 1);
}

/// For remediations the same holds.
#[test]
fn no_remediation_fences_by_a_claimed_identity() {
    let claims = |scene: &mut Scene| {
        ["n1", "m1"].iter().for_each(|name| scene.node(name).system_uuid = UUID.to_owned());
    };
    let mut scene = scene(Select::SystemUuid, claims);
    scene.policies(vec![Policy { selector: super::scene::selector("role", "none"), ..policy("workers") }]);
    scene.decider.remediations(vec![super::scene::remediation("w", "n1")]);
    assert_eq!(scene.run(300), []);
    assert!(scene.update("w").state.text.contains("system UUID"));
}
