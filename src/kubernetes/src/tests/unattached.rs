//! Volumes that no attachment bears are named, and no others (K5).

use super::*;
use crate::object::Pod;
use crate::unattached;

const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data-db-0";
const VOLUME: &str = "/api/v1/persistentvolumes/v-1";
const DRIVER: &str = "/apis/storage.k8s.io/v1/csidrivers/files.example.org";
const BY_POWER: &str = "; only the power keeps it from: default/db-0: data";

/// What is told of a pod with that volume by that API; the API refuses wherever a path ends like that.
async fn told(volume: &Value, api: &Arc<Api>, fails: &str) -> String {
    api.fails(fails);
    let settings = json!({ "cluster_uid": CLUSTER });
    let release = OutOfService::read(settings.as_object().expect("a table")).expect("settings");
    release.cluster.by(api.client(&release.cluster.clock));
    let mut named = json!({ "name": "data" });
    named.as_object_mut().expect("an object").extend(volume.as_object().expect("an object").clone());
    let pod =
        json!({ "metadata": { "name": "db-0", "namespace": "default" }, "spec": { "volumes": [named] } });
    let pod: Pod = serde_json::from_value(pod).expect("a Pod");
    unattached::words(&release.cluster, &[&pod], soon()).await
}

/// The same of a pod that has it by a claim; the volume is made of that.
async fn told_by_claim(made_of: &Value, driver: Option<Value>, fails: &str) -> String {
    let claim = (CLAIM, json!({ "spec": { "volumeName": "v-1" } }));
    let volume = (VOLUME, json!({ "spec": made_of }));
    let api = Api::with([claim, volume].into_iter().chain(driver.map(|driver| (DRIVER, driver))));
    told(&json!({ "persistentVolumeClaim": { "claimName": "data-db-0" } }), &api, fails).await
}

fn csi() -> Value {
    json!({ "csi": { "driver": "files.example.org", "volumeHandle": "h" } })
}

/// A driver attaches where it does not say that it needs none, as the attach-detach controller has it; also one that nobody has told of.
#[tokio::test(start_paused = true)]
async fn a_csi_driver_that_attaches_nothing_is_named_and_one_that_does_or_is_not_known_is_not() {
    let without = format!("{BY_POWER} (CSI driver files.example.org, without attach)");
    for (driver, words) in [
        (Some(json!({ "spec": { "attachRequired": false } })), without.as_str()),
        (Some(json!({ "spec": { "attachRequired": true } })), ""),
        (Some(json!({ "spec": {} })), ""),
        (None, ""),
    ] {
        assert_eq!(told_by_claim(&csi(), driver.clone(), "").await, words, "{driver:?}");
    }
}

/// Who must not look there is told so, instead of nothing.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_told_is_said() {
    let driver = json!({ "spec": { "attachRequired": false } });
    for at in ["files.example.org", "v-1", "data-db-0"] {
        let words = told_by_claim(&csi(), Some(driver.clone()), at).await;
        assert!(words.starts_with("; which volumes are not attached cannot be told: "), "{at}: {words}");
    }
}

/// As a volume of the pod itself, and by a claim.
#[tokio::test(start_paused = true)]
async fn what_kubernetes_mounts_without_attaching_it_is_named() {
    for (made_of, words) in [
        (json!({ "cephfs": { "monitors": ["m"] } }), "CephFS"),
        (json!({ "iscsi": { "targetPortal": "p", "iqn": "i", "lun": 0 } }), "iSCSI"),
        (json!({ "fc": { "targetWWNs": ["w"], "lun": 0 } }), "Fibre Channel"),
        (json!({ "flexVolume": { "driver": "example.org/flex" } }), "FlexVolume"),
        (json!({ "nfs": { "server": "s", "path": "/" } }), "NFS"),
    ] {
        let named = format!("{BY_POWER} ({words})");
        assert_eq!(told(&made_of, &Api::with([]), "").await, named);
        assert_eq!(told_by_claim(&made_of, None, "").await, named);
    }
    // A claim that is gone, or has no volume yet, has nothing that anybody writes to.
    let claim = json!({ "persistentVolumeClaim": { "claimName": "data-db-0" } });
    assert_eq!(told(&claim, &Api::with([]), "").await, "");
    assert_eq!(told(&claim, &Api::with([(CLAIM, json!({ "spec": {} }))]), "").await, "");
}
