//! One cluster for all tests here, each of which has machines of its own.

use picket_tests::Result;
use picket_tests::peers::{CsiCall, Kubernetes, KubernetesMachine, Stopped};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// What lets go what a Node holds.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// It ends with this process.
pub async fn cluster() -> Result<&'static Kubernetes> {
    static CLUSTER: OnceCell<Kubernetes> = OnceCell::const_new();
    CLUSTER.get_or_try_init(|| Kubernetes::start(14)).await
}

/// What detaches stands still until this is dropped, and nobody else lets it go on meanwhile.
pub async fn sleeping(cluster: &'static Kubernetes) -> (Stopped<'static>, MutexGuard<'static, ()>) {
    static ONE: Mutex<()> = Mutex::const_new(());
    let one = ONE.lock().await;
    (cluster.stop_csi_controller(), one)
}

/// For a volume that goes from one to the other, in the right order.
pub fn for_moving(cluster: &Kubernetes) -> [&KubernetesMachine; 2] {
    ["n1", "n2"].map(|name| cluster.machine(name))
}

/// The same in the wrong order.
pub fn for_the_wrong_order(cluster: &Kubernetes) -> [&KubernetesMachine; 2] {
    ["n3", "n4"].map(|name| cluster.machine(name))
}

/// For a volume that goes from one to the other by a gateway's doing.
pub fn for_a_gateway(cluster: &Kubernetes) -> [&KubernetesMachine; 2] {
    ["n8", "n9"].map(|name| cluster.machine(name))
}

/// Of a gateway that takes it for another one; it is off at the end.
pub fn for_a_mistake(cluster: &Kubernetes) -> &KubernetesMachine {
    cluster.machine("n10")
}

/// For a volume that goes from one to the other, while its Node is deleted.
pub fn for_deletion(cluster: &Kubernetes) -> [&KubernetesMachine; 2] {
    ["n11", "n12"].map(|name| cluster.machine(name))
}

/// Of the test with taints of others.
pub fn for_foreign_taints(cluster: &Kubernetes) -> &KubernetesMachine {
    cluster.machine("n13")
}

/// Of a gateway that names it otherwise than its cluster does.
pub fn for_another_name(cluster: &Kubernetes) -> &KubernetesMachine {
    cluster.machine("n14")
}

/// Of the test in which a machine goes away and comes back.
pub fn for_absence(cluster: &Kubernetes) -> &KubernetesMachine {
    cluster.machine("n5")
}

/// Of the test with many pods.
pub fn for_many(cluster: &Kubernetes) -> &KubernetesMachine {
    cluster.machine("n7")
}

/// Of tests that do it no harm.
pub fn for_everybody(cluster: &Kubernetes) -> &KubernetesMachine {
    cluster.machine("n6")
}

/// What was done and where, in order; without what was refused.
pub fn told(calls: &[CsiCall]) -> Vec<(&str, &str)> {
    let done = calls.iter().filter(|call| call.what != "refused");
    done.map(|call| (call.what.as_str(), call.node.as_str())).collect()
}
