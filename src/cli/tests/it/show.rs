//! Nodes, status, history: what people and scripts see.

use crate::common::gateway::{Gateway, Script};
use crate::common::make::{fence, node, outcome, troubled};
use crate::common::{ask, golden, picket, run, see};
use picket_proto::v1::*;

fn fleet() -> Script {
    let unchecked = Node {
        power: None,
        readiness: Readiness::Unspecified.into(),
        devices: vec![Device {
            id: "bmc".to_owned(),
            level: 1,
            driver: "ipmi".to_owned(),
            ..Default::default()
        }],
        ..node("r1n03")
    };
    let under_way = Fence {
        id: "01990000-0000-7000-8000-000000000008".to_owned(),
        ended_at: None,
        outcome: None,
        evidence: None,
        timings: None,
        ..fence()
    };
    let blocked = Fence {
        id: "01990000-0000-7000-8000-000000000006".to_owned(),
        outcome: Some(outcome(OutcomeKind::NeedsOperator, Reason::LevelsSpent, "")),
        ended_at: None,
        evidence: None,
        timings: None,
        ..fence()
    };
    Script {
        nodes: vec![node("r1n01"), node("r1n02"), unchecked, troubled("r1n07")],
        fences: vec![under_way, fence(), blocked],
        ..Default::default()
    }
}

#[tokio::test]
async fn what_people_see() {
    let gateway = Gateway::start(fleet()).await;
    for (line, name) in [
        ("nodes", "nodes.txt"),
        ("status", "status.txt"),
        ("status r1n01,r1n07", "status_detail.txt"),
        ("history", "history.txt"),
        ("history --fence 01990000-0000-7000-8000-000000000007", "history_fence.txt"),
    ] {
        let ran = ask(&gateway, line).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line}");
        golden(name, &ran.out);
    }
}

#[tokio::test]
async fn what_scripts_see() {
    let gateway = Gateway::start(fleet()).await;
    for (line, name) in [
        ("list r1n07 -o json", "nodes.json"),
        ("list r1n07 -o yaml", "nodes.yaml"),
        ("history --limit 2 -o json", "history.json"),
        ("history --fence 01990000-0000-7000-8000-000000000007 -o json", "history_fence.json"),
    ] {
        let ran = ask(&gateway, line).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line}");
        golden(name, &ran.out);
    }
}

#[tokio::test]
async fn lists_turn_their_pages() {
    let gateway = Gateway::start(fleet()).await;
    let ran = ask(&gateway, "nodes -o json").await;
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["nodes"].as_array().map(Vec::len), Some(4));
    let ran = ask(&gateway, "history -o json").await;
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["fences"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn nobody_asked_for_the_fence_after_a_breach() {
    let breach = Fence { cause: FenceCause::Breach.into(), askers: Vec::new(), ..fence() };
    let joined = Fence { cause: FenceCause::Breach.into(), ..fence() };
    let gateway = Gateway::start(Script { fences: vec![breach, joined], ..Default::default() }).await;
    let list = ask(&gateway, "history").await.out;
    assert!(!list.contains("uid 1000") && !list.contains("disk on fire"), "{list}");
    assert_eq!(list.matches("nobody").count(), 2, "{list}");
    assert_eq!(list.matches("a breach: found on").count(), 2, "{list}");
    let one = ask(&gateway, "history --fence 01990000-0000-7000-8000-000000000007").await.out;
    assert!(one.contains("nobody asked for this fence") && !one.contains("asked by"), "{one}");
}

#[tokio::test]
async fn an_orphan_is_told_once_and_its_devices_as_what_they_were() {
    let mut orphan = Node { orphaned: true, reason: Reason::Orphaned.into(), ..troubled("r1n07") };
    orphan.devices.truncate(1);
    orphan.devices[0].reading = None;
    let retired = Node {
        phase: Phase::Retired.into(),
        reason: 0,
        orphaned: false,
        devices: Vec::new(),
        ..troubled("r1n08")
    };
    let gateway = Gateway::start(Script { nodes: vec![orphan, retired], ..Default::default() }).await;
    let said = ask(&gateway, "status r1n07").await.out;
    assert!(said.contains("needs operator, ORPHANED since") && !said.contains("(orphaned)"), "{said}");
    assert!(
        said.contains("device bmc     ipmi at 192.0.2.7:623, host, level 1: not asked any more"),
        "{said}"
    );
    assert!(!said.contains("checked"), "{said}");
    let said = ask(&gateway, "retire r1n08 --reason gone --yes").await.out;
    assert_eq!(said, "r1n08  retired\n");
}

#[tokio::test]
async fn what_is_asked_for_reaches_the_gateway() {
    let gateway = Gateway::start(fleet()).await;
    ask(&gateway, "nodes r1n01 --phase needs-operator,fenced --fresh").await;
    let listed = gateway.script().listed[0].clone();
    assert!(listed.fresh);
    assert_eq!(listed.phases, [i32::from(Phase::NeedsOperator), i32::from(Phase::Fenced)]);
}

#[tokio::test]
async fn what_is_not_there_is_6() {
    let gateway = Gateway::start(fleet()).await;
    for line in ["nodes r1n99", "status r1n99", "history --fence 01990000-0000-7000-8000-000000000099"] {
        let ran = ask(&gateway, line).await;
        assert_eq!((ran.code, ran.out.as_str()), (6, ""), "{line}: {ran:?}");
    }
}

#[tokio::test]
async fn a_fleet_without_nodes_is_no_error() {
    let gateway = Gateway::start(Script::default()).await;
    let ran = ask(&gateway, "status").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "The gateway has no nodes.\n"));
}

#[tokio::test]
async fn a_reader_that_leaves_is_no_error() {
    let gateway = Gateway::start(fleet()).await;
    for line in ["nodes", "history", "nodes -o json"] {
        let mut command = picket(line);
        command.args(["--endpoint", &gateway.endpoint()]);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        command.stdout(writer).stderr(std::process::Stdio::piped());
        let child = command.spawn().expect("it runs");
        let done = child.wait_with_output().await.expect("it ends");
        assert_eq!(
            (done.status.code(), String::from_utf8_lossy(&done.stderr).as_ref()),
            (Some(0), ""),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_context_of_the_settings_leads_to_its_gateway() {
    let gateway = Gateway::start(fleet()).await;
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("picket")).expect("made");
    let text = format!("[contexts.lab]\nendpoint = \"{}\"\n", gateway.endpoint());
    std::fs::write(dir.path().join("picket/config.toml"), text).expect("written");
    let mut command = picket("nodes --context lab");
    command.env("XDG_CONFIG_HOME", dir.path());
    let ran = run(command).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut command = picket("nodes --context test");
    command.env("XDG_CONFIG_HOME", dir.path());
    let ran = run(command).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("there is: lab"), "{}", ran.err);
}

#[tokio::test]
async fn a_unix_socket_leads_to_its_gateway() {
    let gateway = Gateway::start(fleet()).await;
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("picket.sock");
    let listener = tokio::net::UnixListener::bind(&socket).expect("bound");
    let port = gateway.endpoint().trim_start_matches("http://").to_owned();
    let relay = tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = tokio::net::TcpStream::connect(&port).await.expect("the gateway");
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    for form in ["unix:", "unix://"] {
        let mut command = picket("nodes");
        command.args(["--endpoint", &format!("{form}{}", socket.display())]);
        let ran = run(command).await;
        assert_eq!((ran.code, ran.out.lines().count()), (0, 5), "{ran:?}");
    }
    relay.abort();
}

#[tokio::test]
async fn help_needs_no_gateway() {
    let fence = run(picket("fence --help")).await.out;
    assert!(!fence.contains("Not offered"), "{fence}");
    assert!(fence.contains("[default: claimed]") && !fence.contains("audit"), "{fence}");
}

#[tokio::test]
async fn every_list_fits_a_terminal_of_60_columns() {
    let gateway = Gateway::start(fleet()).await;
    for (line, name) in [
        ("nodes", "nodes_80.txt"),
        ("status", "status_80.txt"),
        ("status r1n07", "status_detail_80.txt"),
        ("history --fence 01990000-0000-7000-8000-000000000007", "history_fence_80.txt"),
    ] {
        let (code, shown) = see(&gateway, line, 80).await;
        assert_eq!(code, 0, "{line}: {shown}");
        golden(name, &shown);
        // Whatever is too long for the terminal fails in there.
        let (code, narrow) = see(&gateway, line, 60).await;
        assert_eq!(code, 0, "{line}: {narrow}");
        golden(&name.replace("80", "60"), &narrow);
        let words = |text: &str| {
            text.split_whitespace().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let missing: Vec<String> = words(&narrow).difference(&words(&shown)).cloned().collect();
        assert_eq!(missing, Vec::<String>::new(), "a word that is broken is none of those at 80 columns");
    }
    let wide = see(&gateway, "nodes --wide", 140).await.1;
    assert!(wide.contains("2026-11-21T09:10:20Z"), "{wide}");
}

#[tokio::test]
async fn what_makes_a_kubeconfig_s_account_is_told_without_a_gateway() {
    let told = run(picket("kubeconfig --role release --role machines")).await;
    assert_eq!(told.code, 0, "{told:?}");
    golden("kubeconfig.txt", &told.out);
    // A shell reads it.
    let read = tokio::process::Command::new("sh").args(["-n", "-c", &told.out]).status().await;
    assert!(read.expect("a shell").success(), "{told:?}");
    let two = run(picket("kubeconfig --role release --role controller")).await;
    assert!(two.code == 2 && two.err.contains("picket and picket-controller"), "{two:?}");
    let half = run(picket("kubeconfig --role release --server https://10.0.0.1:6443")).await;
    assert!(half.code == 2 && half.err.contains("--token-file"), "{half:?}");
}
