//! Which node a gateway runs on (S17, K13).

use crate::common::*;

#[test]
fn a_kubernetes_node_that_is_another_one_of_ours_contradicts_the_own_one() {
    let home = Home::with(GOOD);
    let told = "PICKET__GATEWAY__KUBERNETES_NODE";
    let both = home.load_with(&[(told, "control-plane-1"), ("PICKET__GATEWAY__NODE", "r1n08")]);
    assert_eq!(both.unwrap().gateway.node, Some(node("r1n08")));
    let faults = home.faults(&[(told, "r1n07"), ("PICKET__GATEWAY__NODE", "r1n08")]);
    assert!(faults[0].contains(told) && faults[0].contains("node says r1n08"), "{faults:?}");
}
