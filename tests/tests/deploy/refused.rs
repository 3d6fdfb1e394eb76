//! Values that are refused, and with which words.

use picket_tests::Result;
use serde_json::{Value, json};

use crate::variants::{bundled, given, told, with};

/// What helm complains of.
async fn refused(values: &Value) -> Result<String> {
    let said = told(&["template", "picket"], values).await?;
    assert_ne!(said.code, 0, "{values:#} was taken");
    Ok(said.err)
}

#[tokio::test]
async fn a_value_that_is_wrong_is_named() -> Result<()> {
    for (place, value, words) in [
        ("/gateways/replicaz", json!(3), "replicaz"),
        ("/colour", json!("red"), "colour"),
        ("/gateways/replicas", json!(0), "replicas"),
        ("/gateways/replicas", json!("three"), "replicas"),
        ("/gateways/runOn", json!("workers"), "runOn"),
        ("/gateways/tls/secretName", json!("Not A Name"), "secretName"),
        ("/gateways/resources", json!({ "requests": { "memory": null } }), "memory"),
        ("/gateways/storage/kind", json!("hostPath"), "kind"),
        ("/gateways/env", json!({ "PICKET__RULES__READINGS": 2 }), "PICKET__RULES__READINGS"),
        ("/gateways/advertise", json!("gateway:7070"), "advertise"),
        ("/etcd/endpoints", json!(["http://e1:2379"]), "endpoints"),
        ("/etcd/bundled/nodes", json!([{ "name": "n1", "inFleet": true }]), "nodes"),
        ("/etcd/bundled/nodes", json!([{ "name": "n1" }, { "name": "n2" }, { "name": "n3" }]), "inFleet"),
        ("/monitoring/serviceMonitor/interval", json!("often"), "interval"),
        ("/controller/endpoints", json!(["gateway:7070"]), "endpoints"),
        ("/controller/select", json!("ip"), "select"),
        ("/controller/replicas", json!(0), "replicas"),
        ("/settings/password", json!("hunter2"), "password"),
    ] {
        let told = refused(&with(given(), &[(place, value)])).await?;
        assert!(told.contains(words) && told.contains("schema"), "{place}: {told}");
    }
    Ok(())
}

#[tokio::test]
async fn a_controller_without_a_certificate_is_refused() -> Result<()> {
    let told = refused(&with(given(), &[("/controller", json!({ "enabled": true }))])).await?;
    assert!(told.contains("controller.tls.secretName") && told.contains("role controller"), "{told}");
    let elsewhere = json!({ "enabled": true, "tls": { "secretName": "controller-tls" } });
    let elsewhere =
        with(given(), &[("/controller", elsewhere), ("/gateways/fenceThisCluster", json!(false))]);
    assert!(refused(&elsewhere).await?.contains("whose Nodes are fenced"));
    let remediating =
        json!({ "enabled": true, "remediation": true, "tls": { "secretName": "controller-tls" } });
    let told = refused(&with(given(), &[("/controller", remediating)])).await?;
    assert!(told.contains("controller.remediationNamespaces"), "{told}");
    Ok(())
}

#[tokio::test]
async fn gateways_without_a_shared_store_are_refused() -> Result<()> {
    for replicas in [1, 2, 3] {
        let alone = with(given(), &[("/etcd/endpoints", json!([])), ("/gateways/replicas", json!(replicas))]);
        let told = refused(&alone).await?;
        assert!(told.contains("shared store") && told.contains("etcd.endpoints"), "{told}");
    }
    let both = with(bundled(), &[("/etcd/endpoints", json!(["https://e1:2379"]))]);
    assert!(refused(&both).await?.contains("one of the two"));
    Ok(())
}

#[tokio::test]
async fn what_is_missing_is_named_with_what_it_is_for() -> Result<()> {
    for (values, place, words) in [
        (given(), "/settings/toml", "settings.toml"),
        (given(), "/gateways/tls/secretName", "gateways.tls.secretName"),
        (given(), "/etcd/tls/secretName", "etcd.tls.secretName"),
        (bundled(), "/etcd/bundled/tls/secretName", "etcd.bundled.tls.secretName"),
        (bundled(), "/etcd/bundled/image/tag", "etcd.bundled.image"),
    ] {
        let told = refused(&with(values, &[(place, json!(""))])).await?;
        assert!(told.contains(words), "{place}: {told}");
    }
    let map = with(given(), &[("/settings/existingConfigMap", json!("mine"))]);
    assert!(refused(&map).await?.contains("one of the two"));
    Ok(())
}

/// S17: a fence that would cost the store its quorum is BLOCKED, for which it must be known where its members are.
#[tokio::test]
async fn who_fences_the_nodes_of_its_own_etcd_must_know_which_they_are() -> Result<()> {
    let unknown = with(bundled(), &[("/etcd/bundled/nodes", json!([]))]);
    let told = refused(&unknown).await?;
    assert!(told.contains("etcd.bundled.nodes") && told.contains("quorum"), "{told}");
    let elsewhere = with(unknown, &[("/gateways/fenceThisCluster", json!(false))]);
    assert_eq!(self::told(&["template", "picket"], &elsewhere).await?.code, 0);
    Ok(())
}

#[tokio::test]
async fn an_old_kubernetes_is_refused() -> Result<()> {
    let said = told(&["template", "picket", "--kube-version", "1.28.0"], &given()).await?;
    assert!(said.code != 0 && said.err.contains("1.29"), "{}", said.err);
    Ok(())
}
