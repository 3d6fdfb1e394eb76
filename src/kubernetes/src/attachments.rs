//! The VolumeAttachments of a node: what the attach-detach controller, and who attaches, have not let go yet.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::object::{CsiDriver, CsiNode, List, PersistentVolume, VolumeAttachment};

/// What is known of CSI drivers is good for so long.
const FRESH: Duration = Duration::from_secs(5);

/// Those of one Node, each in words.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    /// They are waited for.
    pub(crate) volumes: Vec<String>,
    /// They never were attached, and nobody is left who would attach or detach them (K5).
    pub(crate) ignored: Vec<String>,
}

const ALL: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// One that never was attached, and of whose CSI driver nothing is left, and the Node that it names.
#[derive(Clone, Debug)]
pub(crate) struct Nobodys {
    pub(crate) node: String,
    pub(crate) words: String,
}

/// Those of the whole cluster, for a check.
pub(crate) async fn of_nobody(cluster: &Cluster, until: Instant) -> Result<Vec<Nobodys>, Fault> {
    let all: List<VolumeAttachment> = cluster.get(ALL, until).await?;
    let begun: Vec<VolumeAttachment> = all.items.into_iter().filter(was_never_attached).collect();
    if begun.is_empty() {
        return Ok(Vec::new());
    }
    let drivers = cluster.drivers(FRESH, until).await?;
    let of_none = begun.into_iter().filter(|one| !drivers.contains(&one.spec.attacher));
    let told = |one: VolumeAttachment| Nobodys {
        words: format!(
            "the VolumeAttachment {} never was attached, and its CSI driver {} is gone: no release waits for it; take it away by \
             kubectl delete volumeattachment {}",
            one.metadata.name, one.spec.attacher, one.metadata.name
        ),
        node: one.spec.node_name,
    };
    Ok(of_none.map(told).collect())
}

/// Those of the Node.
pub(crate) async fn of(cluster: &Cluster, name: &str, until: Instant) -> Result<Attachments, Fault> {
    let all: List<VolumeAttachment> = cluster.get(ALL, until).await?;
    let of_node = all.items.into_iter().filter(|one| one.spec.node_name == name);
    let (begun, waits): (Vec<_>, Vec<_>) = of_node.partition(was_never_attached);
    let mut left = Attachments { volumes: waits.iter().map(words).collect(), ..Attachments::default() };
    // While others are waited for, nothing is gained by asking whose these are.
    if begun.is_empty() || !left.volumes.is_empty() {
        left.volumes.extend(begun.iter().map(words));
        return Ok(left);
    }
    match cluster.drivers(FRESH, until).await {
        Ok(drivers) => {
            let (waits, ignored): (Vec<_>, Vec<_>) =
                begun.iter().partition(|one| drivers.contains(&one.spec.attacher));
            left.volumes = waits.into_iter().map(words).collect();
            let why = |one| format!("{}, never attached, and its CSI driver is gone", words(one));
            left.ignored = ignored.into_iter().map(why).collect();
        }
        Err(fault) => {
            let why =
                |one| format!("{}, and whether its CSI driver is gone cannot be told: {fault}", words(one));
            left.volumes = begun.iter().map(why).collect();
        }
    }
    Ok(left)
}

/// The names of all CSI drivers of which anything is left: their object, a kubelet with which they registered, or a volume.
pub(crate) async fn drivers(cluster: &Cluster, until: Instant) -> Result<BTreeSet<String>, Fault> {
    let (objects, kubelets, volumes) = tokio::join!(
        cluster.get::<List<CsiDriver>>("/apis/storage.k8s.io/v1/csidrivers", until),
        cluster.get::<List<CsiNode>>("/apis/storage.k8s.io/v1/csinodes", until),
        cluster.get::<List<PersistentVolume>>("/api/v1/persistentvolumes", until),
    );
    let objects = objects?.items.into_iter().map(|driver| driver.metadata.name);
    let kubelets = kubelets?.items.into_iter().filter_map(|node| node.spec.drivers).flatten();
    let volumes = volumes?.items;
    let of_volumes = volumes.iter().filter_map(PersistentVolume::driver).map(str::to_owned);
    Ok(objects.chain(kubelets.map(|driver| driver.name)).chain(of_volumes).collect())
}

/// One without a PersistentVolume is of a volume of its own.
fn was_never_attached(one: &VolumeAttachment) -> bool {
    let status = &one.status;
    let was = status.attached || !status.attachment_metadata.is_empty() || status.detach_error.is_some();
    !was && one.spec.source.persistent_volume_name.is_some()
}

fn words(one: &VolumeAttachment) -> String {
    let volume = one.spec.source.persistent_volume_name.as_deref().unwrap_or("an inline volume");
    format!("{volume} by {} ({})", one.spec.attacher, one.metadata.name)
}
