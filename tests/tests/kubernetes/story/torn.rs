//! Without the off.

use std::time::{Duration, SystemTime};

use picket_tests::Result;
use picket_tests::peers::{Who, until};
use serde_json::json;

use crate::story::scene::{ATTACHING, OUT_OF_SERVICE, scene, server, stuck};

/// The taint by hand, and nobody switches off: the volume is detached from a server that is ACTIVE, and both machines write. A hypervisor
/// that pulls the disk out may end that one's writing, where its kernel goes along; nothing says that it did. Without this test the
/// others would show nothing: here what they look for is there, and is seen.
#[tokio::test]
async fn by_the_taint_alone_two_servers_write_to_one_volume_and_that_is_seen() -> Result<()> {
    let scene = scene().await?;
    let attaching = ATTACHING.lock().await;
    let (here, there, database) = stuck(scene, "torn", ["n5", "n6"]).await?;
    let (cluster, cloud) = (&scene.cluster, &scene.cloud);
    cluster.kubectl(&["delete", "pod", &database.pod(), "--grace-period=0", "--force"]).await?;
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    cluster.kubectl(&["taint", "node", here.name(), &taint]).await?;
    database.runs_on(there.name()).await?;
    scene.is_at(database.volume(), there).await?;
    drop(attaching);
    let torn = async || Ok(database.writers().overlaps() >= 20);
    until("two servers write to one volume", Duration::from_secs(120), torn).await?;
    assert!(here.runs() && there.runs());
    assert_eq!(cloud.look(&Who::Tenant, &server(here)).await?["status"], "ACTIVE");

    // With the server its guest goes, and with that one of the writers.
    cloud.ask(&Who::Tenant, "stop", json!({ "server": server(here) })).await?;
    cloud.until_server(&server(here), "SHUTOFF").await?;
    let off = SystemTime::now();
    assert!(!here.runs());
    database.still_writes(there.name()).await?;
    assert_eq!(database.writers().after(off).of(here.name()).0, []);
    Ok(())
}
