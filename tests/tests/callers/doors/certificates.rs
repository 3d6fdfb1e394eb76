//! Certificates that are right, and all that are not: each is refused with words that help on both sides.

use std::time::Duration;

use picket_proto::v1::{ListNodesRequest, WatchNodesRequest};
use picket_tests::{Client, Result};

use crate::doors::authority::{Authority, Files, Holds, self_made};
use crate::doors::scene::Scene;

#[tokio::test]
async fn who_has_a_right_certificate_is_known_by_its_name() -> Result<()> {
    let scene = Scene::open().await?;
    let alice = scene.caller("alice@example.org");
    let said = scene.picket(&alice, &["fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", scene.gateway.log());
    let said = scene.picket(&alice, &["-o", "json", "status", "n1"]).await?;
    assert!(said.out.contains("\"alice@example.org\""), "{said:?}");
    let line = scene.logged(&["n1", "caller=\"alice@example.org\"", "a fence is asked for"]).await;
    assert!(line.contains("INFO"), "{line}");
    // The least good name is good enough, and the best one counts.
    for name in ["spiffe://lab/ns/db", "screen.example.org"] {
        let said = scene.picket(&scene.caller(name), &["nodes"]).await?;
        assert_eq!(said.code, 0, "{name}: {said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn every_wrong_certificate_is_refused_and_told_to_both_sides() -> Result<()> {
    let scene = Scene::open().await?;
    let dir = scene.path("");
    let alice = "alice@example.org";
    let of = |file: &str, holds| scene.authority.client(&dir, file, alice, holds);
    let cases: [(&str, Files, &str, &str); 5] = [
        (
            "another CA's",
            Authority::new().client(&dir, "other", alice, Holds::Now),
            "not of a CA",
            "not of a CA in client_ca_file",
        ),
        ("self-made", self_made(&dir, "own", alice), "not of a CA", "not of a CA in client_ca_file"),
        ("expired", of("old", Holds::NotAnyMore), "has expired", "the certificate has expired"),
        ("not yet valid", of("new", Holds::NotYet), "valid yet", "not valid yet"),
        (
            "a gateway's",
            scene.authority.server(&dir, "swapped", "screen.example.org"),
            "for clients",
            "not for clients",
        ),
    ];
    for (what, files, hint, words) in &cases {
        let said = scene.picket(files, &["nodes"]).await?;
        assert_eq!(said.code, 7, "{what}: {said:?}");
        assert!(said.err.contains(hint), "{what}: {said:?}");
        scene.logged(&["audit", "UNAUTHENTICATED", "tls:127.0.0.1", words]).await;
    }
    Ok(())
}

#[tokio::test]
async fn without_a_certificate_nobody_is_let_in() -> Result<()> {
    let scene = Scene::open().await?;
    // In TLS 1.3 the client is through before the gateway has looked: the first call shows it.
    if let Ok(channel) = scene.channel(None).await {
        let refused =
            Client::new(channel).list_nodes(ListNodesRequest::default()).await.expect_err("refused");
        assert_ne!(refused.code(), tonic::Code::Ok, "{refused}");
    }
    scene.logged(&["audit", "no certificate was shown"]).await;
    // Neither is who speaks no TLS at all, and is told so.
    let plain = scene.endpoint.replace("https://", "http://");
    let said = picket_tests::picket(&["--endpoint", &plain, "nodes"]).await?;
    assert_eq!(said.code, 5, "{said:?}");
    let right = format!("that port speaks TLS: write {}, with your certificates", scene.endpoint);
    assert!(said.err.contains(&right), "{said:?}");
    scene.logged(&["audit", "is no TLS"]).await;
    Ok(())
}

#[tokio::test]
async fn a_name_that_could_be_anothers_is_none() -> Result<()> {
    let scene = Scene::open().await?;
    let spoof = scene.authority.client(&scene.path(""), "spoof", "uid:0", Holds::Now);
    let said = scene.picket(&spoof, &["nodes"]).await?;
    assert_ne!(said.code, 0, "{said:?}");
    scene.logged(&["audit", "it names nobody"]).await;
    Ok(())
}

#[tokio::test]
async fn a_gateway_of_another_ca_is_not_believed() -> Result<()> {
    let scene = Scene::open().await?;
    let other = scene.path("other-ca.pem");
    Authority::new().write(&other);
    let said = scene.picket_trusting(&other, &scene.caller("alice@example.org"), &["nodes"]).await?;
    assert!(said.code == 7 && said.err.contains("not of your ca_file"), "{said:?}");
    Ok(())
}

#[tokio::test]
async fn a_stream_does_not_outlive_the_certificate_that_opened_it() -> Result<()> {
    let scene = Scene::open().await?;
    let dir = scene.path("");
    let brief = scene.authority.client(&dir, "brief", "screen.example.org", Holds::Shortly(6));
    let mut client = scene.client(&brief).await;
    let mut watch = client.watch_nodes(WatchNodesRequest::default()).await.expect("let in").into_inner();
    let end = async {
        loop {
            match watch.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended well"),
                Err(status) => return status,
            }
        }
    };
    let status = tokio::time::timeout(Duration::from_secs(300), end).await.expect("it ends");
    assert_eq!(status.code(), tonic::Code::Unauthenticated, "{status}");
    assert!(status.message().contains("screen.example.org has expired"), "{status}");
    Ok(())
}
