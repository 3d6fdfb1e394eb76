//! One cluster for all tests of a process, and its machines, each of which is one test's at a time.

use std::time::Duration;

use parking_lot::Mutex as Lock;
use picket_tests::peers::{CsiCall, Kubernetes, KubernetesMachine, Stopped};
use picket_tests::{PeerError, Result};
use tokio::sync::{Mutex, MutexGuard, Notify, OnceCell};

use crate::cluster::fenced::{is_clean, taints};

/// What lets go what a Node holds.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// For many tests. More than that one user may not have: each kubelet watches files by seven of the 128 `fs.inotify.max_user_instances`, each
/// containerd by one.
const MACHINES: u8 = 13;
/// For one test: none asks for more than two, and everybody's.
const MACHINES_OF_ONE: u8 = 3;
/// The one that nobody has alone.
const EVERYBODY_S: &str = "n1";
const LENT_WITHIN: Duration = Duration::from_secs(900);

/// It ends with this process.
pub async fn cluster() -> Result<&'static Kubernetes> {
    static CLUSTER: OnceCell<Kubernetes> = OnceCell::const_new();
    let alone = std::env::var("NEXTEST_EXECUTION_MODE").is_ok_and(|mode| mode == "process-per-test");
    let machines = if alone { MACHINES_OF_ONE } else { MACHINES };
    CLUSTER.get_or_try_init(|| Kubernetes::start(machines)).await
}

/// Of tests that do it no harm.
pub fn for_everybody(cluster: &Kubernetes) -> &KubernetesMachine {
    cluster.machine(EVERYBODY_S)
}

/// Machines that nobody uses, in the order in which they were left; `None`: nobody has asked yet.
static FREE: Lock<Option<Vec<&'static KubernetesMachine>>> = Lock::new(None);
static LEFT: Notify = Notify::const_new();

/// Machines of one test, until it leaves them. What is not left, as its test has failed, nobody else gets.
#[must_use]
pub struct Lent(Vec<&'static KubernetesMachine>);

impl Lent {
    /// The first of them.
    pub fn one(&self) -> &'static KubernetesMachine {
        self.0[0]
    }

    pub fn two(&self) -> [&'static KubernetesMachine; 2] {
        [self.0[0], self.0[1]]
    }

    /// They are as they were found: on, their Nodes ready and clean, with nothing on them. What would be a riddle to the next test fails here.
    pub async fn leave(self) -> Result<()> {
        let (cluster, mut otherwise) = (cluster().await?, Vec::new());
        for machine in self.0 {
            let node = cluster.node(machine).await?;
            let mut taints = taints(&node).into_iter();
            // Those of Kubernetes' own controllers come and go.
            let is_as_found = taints.all(|key| key.starts_with("node.kubernetes.io/")) && is_clean(&node);
            match is_as_found && node["spec"]["unschedulable"] != true {
                true => free(|free| free.push(machine)),
                false => otherwise.push(format!("{}, {}", node["spec"], node["metadata"])),
            }
        }
        LEFT.notify_one();
        assert!(otherwise.is_empty(), "left otherwise than found: {otherwise:#?}");
        Ok(())
    }
}

fn free<T>(with: impl FnOnce(&mut Vec<&'static KubernetesMachine>) -> T) -> T {
    with(FREE.lock().get_or_insert_default())
}

/// So many machines, as soon as they are free. Whoever asks first gets them first.
pub async fn lend(count: usize) -> Result<Lent> {
    static TURN: Mutex<()> = Mutex::const_new(());
    let cluster = cluster().await?;
    let _turn = TURN.lock().await;
    {
        let mut known = FREE.lock();
        let alone = |machine: &&KubernetesMachine| machine.name() != EVERYBODY_S;
        known.get_or_insert_with(|| cluster.machines().iter().filter(alone).collect());
    }
    let machines = loop {
        let taken = free(|free| (free.len() >= count).then(|| free.drain(..count).collect::<Vec<_>>()));
        if let Some(taken) = taken {
            break taken;
        }
        let late = |_| PeerError::TimedOut {
            what: "machines are left by other tests".to_owned(),
            within: LENT_WITHIN,
            seen: String::new(),
        };
        tokio::time::timeout(LENT_WITHIN, LEFT.notified()).await.map_err(late)?;
    };
    for machine in &machines {
        cluster.takes_pods(machine).await?;
    }
    Ok(Lent(machines))
}

/// What detaches stands still until this is dropped, and nobody else lets it go on meanwhile.
pub async fn sleeping(cluster: &'static Kubernetes) -> (Stopped<'static>, MutexGuard<'static, ()>) {
    static ONE: Mutex<()> = Mutex::const_new(());
    let one = ONE.lock().await;
    (cluster.stop_csi_controller(), one)
}

/// Deletes a StatefulSet, and waits until its pods are gone.
pub async fn no_more_of(cluster: &Kubernetes, set: &str) -> Result<()> {
    cluster.kubectl(&["delete", "statefulset", set, "--cascade=foreground", "--timeout=80s"]).await.map(drop)
}

/// What was done and where, in order; without what was refused.
pub fn told(calls: &[CsiCall]) -> Vec<(&str, &str)> {
    let done = calls.iter().filter(|call| call.what != "refused");
    done.map(|call| (call.what.as_str(), call.node.as_str())).collect()
}
