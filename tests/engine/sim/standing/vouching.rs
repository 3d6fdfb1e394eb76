//! What a cluster says of the machine of its Node, as a second word for an identity that was learned from a device (S13).

use std::sync::Arc;

use picket_core::device::{Identity, IdentityMatch};
use picket_core::ids::DeviceId;

use super::*;

fn bmc() -> DeviceId {
    DeviceId::new("bmc").expect("a good name")
}

/// A node of which the settings say no identity; the cluster has the machine of that name for it, if any.
async fn checked(seed: u64, machine: Option<&str>) -> Lab {
    let (mut lab, cluster) = behind_levels(seed, s(1), &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_machine("n2");
    })
    .await;
    lab.kill().await;
    lab.setup.check_at_start = true;
    lab.setup.adjust = Arc::new(|spec| spec.identity = Identity::default());
    let said = machine.map(|name| lab.world.lock().identity(name).clone());
    cluster.state.lock().machine = said;
    lab.start().await;
    lab.engine.check(&node()).await.expect("checked");
    assert!(lab.record().learned.contains_key(&bmc()));
    lab
}

#[tokio::test(start_paused = true)]
async fn an_identity_that_the_cluster_says_too_is_learned_no_more() {
    let lab = checked(2920, Some(NODE)).await;
    let proof = lab.record().identity_proofs.get(&bmc()).cloned().expect("proven");
    assert_eq!(proof.by, "the cluster says the same");
    assert_eq!(lab.view().live.devices[&bmc()].identity_match, Some(IdentityMatch::Match));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_says_another_machine_refutes_an_identity_and_one_that_says_nothing_proves_none() {
    for (machine, proofs, compared) in
        [(Some("n2"), 1, IdentityMatch::Mismatch), (None, 0, IdentityMatch::Learned)]
    {
        let lab = checked(2921, machine).await;
        assert_eq!(lab.record().identity_proofs.len(), proofs, "{machine:?}");
        assert_eq!(lab.view().live.devices[&bmc()].identity_match, Some(compared));
    }
}
