//! What the cluster says of its machines, and what can be done to it.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::{Value, json};

use crate::cluster::scene::{cluster, for_everybody, sleeping, told};

/// A hold of Picket's must find a machine by what its BMC says of itself.
#[tokio::test]
async fn a_node_has_the_uuid_that_its_bmc_says_in_the_other_byte_order() -> Result<()> {
    let cluster = cluster().await?;
    for machine in cluster.machines() {
        let node = cluster.node(machine).await?;
        let said = node["status"]["nodeInfo"]["systemUUID"].as_str().unwrap_or_default();
        assert_eq!(said, machine.uuid());
        let swapped: Vec<&str> =
            [6, 4, 2, 0, 10, 8, 14, 12].iter().filter_map(|i| said.get(*i..i + 2)).collect();
        let swapped = swapped.concat() + &said[16..];
        assert_eq!(machine.bmc().guid(), swapped);
        // As the BMC says it to others.
        let told = machine.ipmitool().run("raw 0x06 0x37").await?;
        assert_eq!(told.split_whitespace().collect::<String>(), swapped);
    }
    Ok(())
}

#[tokio::test]
async fn an_account_may_do_what_its_rules_say_and_no_more() -> Result<()> {
    let cluster = cluster().await?;
    let rules = json!([{ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"] }]);
    let login = cluster.account("looker", &rules).await?;
    let nodes = cluster.kubectl_as(&login, &["get", "nodes", "-o", "name"]).await?;
    assert_eq!(nodes.lines().count(), cluster.machines().len(), "{nodes}");
    let refused = cluster.kubectl_as(&login, &["get", "pods"]).await.expect_err("pods are none of its rules");
    assert!(refused.to_string().contains("Forbidden"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn an_api_server_that_is_stopped_answers_nobody_until_it_goes_on() -> Result<()> {
    let cluster = cluster().await?;
    let ask = ["get", "--raw", "/livez", "--request-timeout=2s"];
    cluster.kubectl(&ask).await?;
    let stopped = cluster.stop_api_server();
    let refused = cluster.kubectl(&ask).await.expect_err("nobody answers");
    assert!(refused.to_string().contains("exceeded"), "{refused}");
    drop(stopped);
    cluster.kubectl(&["get", "--raw", "/livez"]).await.map(drop)
}

#[tokio::test]
async fn while_the_controller_of_volumes_is_stopped_none_is_detached() -> Result<()> {
    let cluster = cluster().await?;
    let machine = for_everybody(cluster);
    let database = cluster.database("asleep", &[machine]).await?;
    database.runs_on(machine.name()).await?;
    let attachment = async || -> Result<Value> {
        let all = cluster.json(&["get", "volumeattachments"]).await?;
        let of = |one: &&Value| one["spec"]["source"]["persistentVolumeName"] == database.volume();
        Ok(all["items"].as_array().into_iter().flatten().find(of).cloned().unwrap_or_default())
    };
    assert_eq!(attachment().await?["spec"]["nodeName"], machine.name());

    let stopped = sleeping(cluster).await;
    cluster.kubectl(&["delete", "statefulset", "asleep"]).await?;
    let asked = async || Ok(attachment().await?["metadata"]["deletionTimestamp"].is_string());
    until("a volume is to be detached", Duration::from_secs(120), asked).await?;
    assert_eq!(told(&database.csi_calls()).last(), Some(&("unmount", machine.name())));
    drop(stopped);
    until("it is", Duration::from_secs(120), async || Ok(attachment().await?.is_null())).await?;
    assert_eq!(told(&database.csi_calls()).last(), Some(&("detach", machine.name())));
    Ok(())
}
