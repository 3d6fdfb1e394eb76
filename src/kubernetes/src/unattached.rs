//! Volumes that no attachment bears: nothing but the power keeps the old writer from them. They are no reason to wait, and are named in the
//! record (K5).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::{Fault, Kind};
use crate::object::{Claim, CsiDriver, PersistentVolume, Pod, Volume};
use crate::pods;
use crate::remains::named;

/// Nothing waits for their names any longer.
const NAMING: Duration = Duration::from_secs(1);
/// So much is asked side by side.
const AT_ONCE: usize = 16;

/// What Kubernetes mounts without attaching it, by its key in a pod or a PersistentVolume.
const SOURCES: [(&str, &str); 11] = [
    ("azureFile", "Azure Files"),
    ("cephfs", "CephFS"),
    ("fc", "Fibre Channel"),
    ("flexVolume", "FlexVolume"),
    ("glusterfs", "GlusterFS"),
    ("hostPath", "a folder of the machine"),
    ("iscsi", "iSCSI"),
    ("local", "a disk of the machine"),
    ("nfs", "NFS"),
    ("quobyte", "Quobyte"),
    ("rbd", "RBD"),
];

/// Where a volume of a pod comes from.
#[derive(Debug, PartialEq, Eq)]
enum From {
    /// It is not attached, and what it is.
    Words(&'static str),
    /// A claim of that name says so.
    Claim(String),
    /// It ends with its pod, or is attached.
    Nowhere,
}

fn source(keys: &serde_json::Map<String, serde_json::Value>) -> Option<&'static str> {
    SOURCES.iter().find(|(key, _)| keys.contains_key(*key)).map(|(_, words)| *words)
}

fn from(pod: &Pod, volume: &Volume) -> From {
    if let Some(words) = source(&volume.source) {
        return From::Words(words);
    }
    let claim = volume.source.get("persistentVolumeClaim").map(|claim| &claim["claimName"]);
    match claim.and_then(serde_json::Value::as_str) {
        Some(claim) => From::Claim(claim.to_owned()),
        None if volume.source.contains_key("ephemeral") => {
            From::Claim(format!("{}-{}", pod.metadata.name, volume.name))
        }
        None => From::Nowhere,
    }
}

/// What of these pods no attachment bears, to be told behind other words; empty: nothing.
pub(crate) async fn words(cluster: &Cluster, pods: &[&Pod], until: Instant) -> String {
    let until = until.min(Instant::now() + NAMING);
    let (all, fault) = of(cluster, pods, until).await;
    let mut words = String::new();
    if !all.is_empty() {
        words += &format!("; only the power keeps it from: {}", named(&all));
    }
    if let Some(fault) = fault {
        words += &format!("; which volumes are not attached cannot be told: {fault}");
    }
    words
}

async fn of(cluster: &Cluster, pods: &[&Pod], until: Instant) -> (Vec<String>, Option<Fault>) {
    let (mut all, mut claims) = (BTreeSet::new(), BTreeMap::new());
    for pod in pods {
        for volume in &pod.spec.volumes {
            let label = format!("{}: {}", pods::words(pod), volume.name);
            match from(pod, volume) {
                From::Words(words) => {
                    all.insert(format!("{label} ({words})"));
                }
                From::Claim(claim) => {
                    claims.insert((pod.metadata.namespace.clone(), claim), label);
                }
                From::Nowhere => {}
            }
        }
    }
    let asking = claims.into_iter().map(|((namespace, claim), label)| async move {
        bound(cluster, &namespace, &claim, until).await.map(|bound| (label, bound))
    });
    let (mut drivers, mut fault) = (BTreeMap::<String, Vec<String>>::new(), None);
    let mut answers = stream::iter(asking).buffer_unordered(AT_ONCE);
    while let Some(answer) = answers.next().await {
        match answer {
            Ok((label, Some(volume))) => {
                if let Some(words) = source(&volume.spec) {
                    all.insert(format!("{label} ({words})"));
                } else if let Some(driver) = volume.driver() {
                    drivers.entry(driver.to_owned()).or_default().push(label);
                }
            }
            Ok((_, None)) => {}
            Err(wrong) => fault = fault.or(Some(wrong)),
        }
    }
    for (driver, labels) in drivers {
        let path = format!("/apis/storage.k8s.io/v1/csidrivers/{driver}");
        match found(cluster.get::<CsiDriver>(&path, until).await) {
            Ok(Some(told)) if told.spec.attach_required == Some(false) => {
                all.extend(
                    labels.into_iter().map(|label| format!("{label} (CSI driver {driver}, without attach)")),
                );
            }
            Ok(_) => {}
            Err(wrong) => fault = fault.or(Some(wrong)),
        }
    }
    (all.into_iter().collect(), fault)
}

/// The volume that a claim has.
async fn bound(
    cluster: &Cluster,
    namespace: &str,
    claim: &str,
    until: Instant,
) -> Result<Option<PersistentVolume>, Fault> {
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}");
    let claim = found(cluster.get::<Claim>(&path, until).await)?;
    let Some(name) = claim.map(|claim| claim.spec.volume_name).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    found(cluster.get(&format!("/api/v1/persistentvolumes/{name}"), until).await)
}

/// What is gone with its pod is nobody's to write to.
fn found<T>(answer: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match answer {
        Err(fault) if fault.is(Kind::NotFound) => Ok(None),
        answer => answer.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn from_of(source: Value) -> From {
        let mut volume = json!({ "name": "data" });
        volume.as_object_mut().expect("an object").extend(source.as_object().expect("an object").clone());
        let pod = json!({ "metadata": { "name": "db-0" }, "spec": { "volumes": [volume] } });
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        from(&pod, &pod.spec.volumes[0])
    }

    #[test]
    fn what_is_mounted_without_an_attachment_is_known_by_its_key() {
        assert_eq!(from_of(json!({ "nfs": { "server": "s", "path": "/" } })), From::Words("NFS"));
        assert_eq!(from_of(json!({ "hostPath": { "path": "/" } })), From::Words("a folder of the machine"));
        for ends_with_it in ["emptyDir", "configMap", "secret", "projected", "downwardAPI", "csi"] {
            assert_eq!(from_of(json!({ ends_with_it: {} })), From::Nowhere);
        }
    }

    #[test]
    fn a_claim_is_asked_by_its_name_also_one_that_belongs_to_its_pod() {
        let claim = json!({ "persistentVolumeClaim": { "claimName": "data-db-0" } });
        assert_eq!(from_of(claim), From::Claim("data-db-0".to_owned()));
        assert_eq!(from_of(json!({ "ephemeral": {} })), From::Claim("db-0-data".to_owned()));
    }

    #[test]
    fn a_volume_says_what_it_is_made_of() {
        let volume =
            |spec: Value| serde_json::from_value::<PersistentVolume>(json!({ "spec": spec })).expect("one");
        let nfs = volume(json!({ "capacity": { "storage": "1Gi" }, "nfs": { "server": "s" } }));
        assert_eq!(source(&nfs.spec), Some("NFS"));
        assert_eq!(source(&volume(json!({ "csi": { "driver": "d" }, "nodeAffinity": {} })).spec), None);
    }
}
