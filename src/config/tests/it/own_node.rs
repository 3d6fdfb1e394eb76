//! Which node a gateway runs on (S17, K13).

use crate::common::*;

#[test]
fn a_kubernetes_node_is_the_own_one_where_it_is_one_of_ours() {
    let home = Home::with(GOOD);
    let with = |variables: &[(&str, &str)]| home.load_with(variables).unwrap().gateway.node;
    let told = "PICKET__GATEWAY__KUBERNETES_NODE";
    assert_eq!(with(&[(told, "r1n07")]), Some(node("r1n07")));
    assert_eq!(with(&[(told, "control-plane-1")]), None);
    assert_eq!(with(&[(told, "control-plane-1"), ("PICKET__GATEWAY__NODE", "r1n08")]), Some(node("r1n08")));
    let faults = home.faults(&[(told, "r1n07"), ("PICKET__GATEWAY__NODE", "r1n08")]);
    assert!(faults[0].contains(told) && faults[0].contains("node says r1n08"), "{faults:?}");
}
