//! Two clouds whose compute hosts are called alike (S13, S22).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::ids::NodeId;
use picket_core::outcome::Outcome;
use picket_driver_sim::Fault;

use crate::lab::{Lab, NODE, s};
use crate::setup::{NodeSetup, PARENT, Setup, named};

const HV: &str = "compute-0";

/// `n1` is cloud B's, and runs on its `compute-0`, which no node is. The node of that name is a machine of cloud A, as is `vm1`. All nodes have that
/// label.
async fn lab(seed: u64, levels: &[&[&str]], copies: &[&str], of: Option<&str>) -> Lab {
    let mut setup = Setup::new(NODE, levels);
    setup.clouds_of = BTreeMap::from([
        ("sim server".to_owned(), "cloud B".to_owned()),
        ("sim vm1-server".to_owned(), "cloud A".to_owned()),
    ]);
    setup.labels = of.map(|of| ("hypervisor_of".to_owned(), of.to_owned())).into_iter().collect();
    setup.copies = Arc::new(Mutex::new(copies.iter().map(|&host| host.to_owned()).collect()));
    for (name, device) in [(HV, "hv-bmc"), ("vm1", "vm1-server")] {
        let levels = named(&[&[device]]);
        setup.nodes.push(NodeSetup { name: name.to_owned(), levels, own_host: false });
    }
    let runs_on = if copies.is_empty() { HV } else { "elsewhere" };
    Lab::set_up(seed, setup, |world| {
        world.add_machine(HV).add_host(HV, "hv-bmc").add_machine("vm1").add_host("vm1", "vm1-server");
        world.add_machine("elsewhere").add_machine(NODE).add_host(NODE, "server").set_parent(NODE, runs_on);
    })
    .await
}

fn hv() -> NodeId {
    NodeId::new(HV).expect("a good name")
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_not_proven_off_by_another_cloud_s_of_the_same_name() {
    for (seed, of, is_proven) in
        [(1701, None, false), (1702, Some("cloud A"), false), (1703, Some("cloud B"), true)]
    {
        let mut lab = lab(seed, &[&["server"], &[PARENT]], &[], of).await;
        lab.fault("server", Fault::OffRefused);
        let outcome = lab.fence().await;
        assert_eq!(outcome == Outcome::Fenced { released: true }, is_proven, "{of:?}: {outcome:?}");
        let phase = lab.engine.node(&hv()).expect("a node").stored.record.phase.label();
        assert_eq!(phase == "released", is_proven, "{of:?}: nobody else's machine is switched off");
        let told = format!("{:?}", lab.record().fence.expect("open"));
        assert_eq!(told.contains("hypervisor_of = "), !is_proven, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_not_over_by_another_cloud_s_machine_of_the_same_name() {
    for (seed, of, is_proven) in
        [(1704, None, false), (1705, Some("cloud A"), false), (1706, Some("cloud B"), true)]
    {
        let mut lab = lab(seed, &[&["server"]], &[HV], of).await;
        let call = lab.call();
        lab.engine.fence(&hv(), call).await.expect("let in");
        lab.reach_of(&hv(), "released", s(900)).await;
        let outcome = lab.fence().await;
        assert_eq!(outcome == Outcome::Fenced { released: true }, is_proven, "{of:?}: {outcome:?}");
    }
}
