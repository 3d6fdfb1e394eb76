//! A machine that does not come back: its Node is deleted, and the remediation stands for the hold.

use super::super::*;
use super::scene::{Scene, wish};
use super::wished::{ended, first, wanted};

/// How the gateway calls the node is told once, and is known until the end, also to whoever leads next.
#[test]
fn one_whose_node_is_gone_stands_and_knows_how_the_gateway_calls_it() {
    let mut scene = wanted(vec![wish("w", "n1")]);
    let order = first(&mut scene);
    let standing = Standing::asked(Some(order.key.clone()), "fencing");
    let id = order.wish.clone().expect("it is a remediation's");
    scene.mind.stands(&id, Standing { gateway_node: Some("rack1-n1".to_owned()), ..standing.clone() });
    scene.mind.stands(&id, standing);
    ended(&mut scene, &order, &End::Off, true);
    let named = |scene: &mut Scene| scene.tiding("w").standing.gateway_node;
    assert_eq!(named(&mut scene).as_deref(), Some("rack1-n1"));
    // Its status has it by now.
    let stored = scene.tiding("w").standing;
    let deleted = |kept| Wish { deleted: true, kept, standing: stored.clone(), ..wish("w", "n1") };
    scene.mind.wishes(vec![deleted(true)]);
    scene.nodes.remove("n1");
    scene.mind.gone("n1");
    assert_eq!((scene.tiding("w").deed, named(&mut scene).as_deref()), (Deed::Page, Some("rack1-n1")));
    scene.mind.lead(false);
    scene.mind.lead(true);
    assert_eq!((scene.tiding("w").deed, named(&mut scene).as_deref()), (Deed::Page, Some("rack1-n1")));
    scene.mind.wishes(vec![deleted(false)]);
    assert_eq!(scene.tiding("w").deed, Deed::Nothing);
}
