//! Certificates that are replaced while the daemon runs.

use picket_proto::v1::{ListNodesRequest, WatchNodesRequest};
use picket_tests::Result;
use picket_tests::peers::{HANGS, until};

use crate::doors::authority::Authority;
use crate::doors::scene::Scene;

#[tokio::test]
async fn new_connections_use_a_new_certificate_without_a_restart() -> Result<()> {
    let scene = Scene::open().await?;
    let alice = scene.caller("alice@example.org");
    let mut before = scene.client(&alice).await;
    before.list_nodes(ListNodesRequest::default()).await.expect("let in");

    let renewed = Authority::new();
    let trusted = scene.path("renewed-ca.pem");
    renewed.write(&trusted);
    let believed = async || {
        Ok::<_, picket_tests::PeerError>(scene.picket_trusting(&trusted, &alice, &["nodes"]).await?.code)
    };
    assert_eq!(believed().await?, 7, "not yet");

    let new = renewed.server(&scene.path(""), "next", "127.0.0.1");
    std::fs::rename(&new.certificate, scene.path("server.pem")).expect("moved");
    // The key is still that of the old one: the old ones serve.
    scene.logged(&["ERROR", "the old ones still serve", "key_file"]).await;
    assert_eq!(scene.picket(&alice, &["nodes"]).await?.code, 0);

    std::fs::rename(&new.key, scene.path("server.key")).expect("moved");
    // The files are looked at once a second.
    until("the new one is shown", HANGS, async || Ok(believed().await? == 0)).await?;
    assert_eq!(scene.picket(&alice, &["nodes"]).await?.code, 7, "the old CA does not vouch for the new one");
    before.list_nodes(ListNodesRequest::default()).await.expect("who is connected stays connected");
    Ok(())
}

#[tokio::test]
async fn callers_of_a_ca_that_was_taken_out_are_not_let_in_any_more() -> Result<()> {
    let scene = Scene::open().await?;
    let alice = scene.caller("alice@example.org");
    let mut connected = scene.client(&alice).await;
    let mut watch = connected.watch_nodes(WatchNodesRequest::default()).await.expect("let in").into_inner();
    let ca = std::fs::read(scene.path("ca.pem")).expect("read");
    let kept = scene.path("kept-ca.pem");
    std::fs::write(&kept, ca).expect("written");
    Authority::new().write(&scene.path("ca.pem"));
    // Nobody connects anew: the files are looked at all the same.
    scene.logged(&["WARN", "vouches for these callers", "connections=1"]).await;
    let end = async { while let Ok(Some(_)) = watch.message().await {} };
    tokio::time::timeout(HANGS, end).await.expect("their streams are closed");
    assert_eq!(scene.picket_trusting(&kept, &alice, &["nodes"]).await?.code, 7);
    scene.logged(&["audit", "not of a CA in client_ca_file"]).await;
    Ok(())
}
