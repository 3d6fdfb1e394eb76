//! A machine that does not come back: its Node is deleted, and the remediation stands for the hold.

use super::super::*;
use super::remediation_requests::{ended, first, wanted};
use super::scene::{Scene, remediation};

/// How the gateway calls the node is told once, and is known until the end, also to whoever leads next.
#[test]
fn one_whose_node_is_gone_stands_and_knows_how_the_gateway_calls_it() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    let state = RemediationState::asked(Some(order.key.clone()), "fencing");
    let id = order.remediation.clone().expect("it is a remediation's");
    scene
        .decider
        .stands(&id, RemediationState { gateway_node: Some("rack1-n1".to_owned()), ..state.clone() });
    scene.decider.stands(&id, state);
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    let named = |scene: &mut Scene| scene.update("w").state.gateway_node;
    assert_eq!(named(&mut scene).as_deref(), Some("rack1-n1"));
    // Its status has it by now.
    let stored = scene.update("w").state;
    let deleted =
        |kept| RemediationRequest { deleted: true, kept, state: stored.clone(), ..remediation("w", "n1") };
    scene.decider.remediations(vec![deleted(true)]);
    scene.nodes.remove("n1");
    scene.decider.gone("n1");
    assert_eq!(
        (scene.update("w").action, named(&mut scene).as_deref()),
        (RemediationAction::Page, Some("rack1-n1"))
    );
    scene.decider.lead(false);
    scene.decider.lead(true);
    assert_eq!(
        (scene.update("w").action, named(&mut scene).as_deref()),
        (RemediationAction::Page, Some("rack1-n1"))
    );
    scene.decider.remediations(vec![deleted(false)]);
    assert_eq!(scene.update("w").action, RemediationAction::Nothing);
}
