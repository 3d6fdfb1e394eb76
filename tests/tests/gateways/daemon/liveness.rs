//! Liveness sources (S15), by the real daemon: a real server and a real program say whether the node recovered.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use picket_tests::peers::eventually;
use picket_tests::{Answer, Fleet, Gateway, Result};
use tempfile::TempDir;

use crate::daemon::{SOON, one_node};

const FENCE: [&str; 5] = ["fence", "n1", "--yes", "--reason", "a test"];
/// What `picket fence` ends with when the node recovered.
const RECOVERED: i32 = 9;

/// Whoever calls is a program: of a person's fence nobody is asked whether the node recovered.
const PROGRAMS: &str = "[roles.programs]\nrole = \"controller\"\ncallers = [\"uid:*\"]";

/// A simulated node whose source is that script.
fn scripted(home: &TempDir, text: &str, lines: &str) -> Fleet {
    let program = home.path().join("alive");
    let script = format!("#!/bin/sh\ncd {}\n{text}\n", home.path().display());
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("executable");
    Fleet::new().with(PROGRAMS).with(&format!(
        "[nodes.n1]\nlabels = {{ rack = \"r1\" }}\n[nodes.n1.devices.bmc]\ndriver = \"sim\"\nmachine = \"n1\"\n\
         [groups.\"rack=*\".liveness]\nkind = \"command\"\nprogram = {program:?}\n{lines}"
    ))
}

#[tokio::test]
async fn a_probe_that_answers_stops_a_fence_before_anything_is_done_and_one_that_does_not_lets_it_go_on()
-> Result<()> {
    let (bmc, webhook, fleet) = one_node().await?;
    let url = webhook.url().replace("/release", "/healthz/{node}");
    let lines =
        format!("[groups.all]\nhosts = \"n1\"\n[groups.all.liveness]\nkind = \"http\"\nurl = {url:?}");
    let gateway = Gateway::start(&fleet.with(&lines).with(PROGRAMS)).await?;
    gateway.checked().await?;
    let before = bmc.hold()?;
    let aborted = gateway.picket(&FENCE).await?;
    assert_eq!((aborted.code, bmc.is_on()?), (RECOVERED, true), "{aborted:?}");
    assert!(aborted.out.contains("recovered"), "{aborted:?}");
    // Its caller is told once the abort is stored; what brings the node back follows.
    while !gateway.picket(&["status", "n1"]).await?.out.contains("normal") {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(bmc.hold()?, before, "nothing of the hold is left");
    let asked: Vec<String> =
        webhook.hooks().into_iter().map(|hook| format!("{} {}", hook.method, hook.path)).collect();
    assert_eq!(asked, ["GET /healthz/n1", "GET /healthz/n1"], "twice in a row, and nothing was released");
    let history = gateway.picket(&["history", "n1"]).await?;
    assert!(history.out.contains("aborted"), "{history:?}");

    for answer in [Answer::Status(503), Answer::HangUp, Answer::Silence] {
        webhook.answer_status(answer);
        let fenced = gateway.picket(&FENCE).await?;
        assert_eq!((fenced.code, bmc.is_on()?), (0, false), "{answer:?}: {fenced:?}");
        let back = gateway.picket(&["unfence", "n1", "--yes", "--reason", "a test"]).await?;
        assert_eq!((back.code, bmc.is_on()?), (0, true), "{answer:?}: {back:?}");
    }
    let told =
        gateway.log().lines().filter(|line| line.contains("gave no answer: the fence goes on")).count();
    // Before the hold and before the off, where nothing answered. The last silence ends in the moment in which the off waits no
    // longer for it: whichever comes first, it may not be told any more.
    assert!((3..=4).contains(&told), "{told}: {}", gateway.log());
    Ok(())
}

/// Without roles whoever reaches the socket is one.
#[tokio::test]
async fn a_person_s_fence_is_not_asked_back() -> Result<()> {
    let (bmc, webhook, fleet) = one_node().await?;
    let url = webhook.url().replace("/release", "/healthz/{node}");
    let lines =
        format!("[groups.all]\nhosts = \"n1\"\n[groups.all.liveness]\nkind = \"http\"\nurl = {url:?}");
    let gateway = Gateway::start(&fleet.with(&lines)).await?;
    let fenced = gateway.picket(&FENCE).await?;
    assert_eq!((fenced.code, bmc.is_on()?), (0, false), "{fenced:?}");
    assert!(webhook.hooks().iter().all(|hook| !hook.path.starts_with("/healthz")), "nobody was asked");
    Ok(())
}

#[tokio::test]
async fn a_program_says_it_and_is_told_which_node() -> Result<()> {
    let home = tempfile::tempdir().expect("a directory");
    let fleet = scripted(&home, "cat >> told; test -e up", "consecutive = 3\ninterval = \"50ms\"");
    let gateway = Gateway::start(&fleet).await?;
    std::fs::write(home.path().join("up"), "").expect("written");
    assert_eq!(gateway.picket(&FENCE).await?.code, RECOVERED);
    let told = std::fs::read_to_string(home.path().join("told")).expect("told");
    assert_eq!(told.lines().count(), 3, "{told}");
    assert!(told.contains(r#""node":"n1""#) && told.contains(r#""rack":"r1""#), "{told}");
    std::fs::remove_file(home.path().join("up")).expect("there");
    let fenced = gateway.picket(&FENCE).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}");
    let told = std::fs::read_to_string(home.path().join("told")).expect("told");
    assert_eq!(told.lines().count(), 5, "once before the hold and once before the off: {told}");
    Ok(())
}

/// Whether the process whose id stands in that file is there and no corpse.
fn lives(file: &Path) -> bool {
    let pid = std::fs::read_to_string(file).unwrap_or_default();
    // proc_pid_stat(5): the state follows the name, which is in parentheses.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

#[tokio::test]
async fn a_program_that_hangs_keeps_no_fence_and_is_not_left_behind() -> Result<()> {
    let home = tempfile::tempdir().expect("a directory");
    let fleet = scripted(&home, "echo $$ > pid; exec sleep 600", "timeout = \"1s\"");
    let gateway = Gateway::start(&fleet).await?;
    let began = Instant::now();
    let fenced = gateway.picket(&FENCE).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}");
    let told = format!("{}{}", fenced.out, fenced.err);
    assert!(told.contains("whether the node recovered") && told.contains("else the fence goes on"), "{told}");
    // Two looks of a second, and what a fence takes anyway: nobody waits until the program ends.
    assert!(began.elapsed() < Duration::from_secs(300), "{:?}", began.elapsed());
    assert!(gateway.log().contains("gave no answer: the fence goes on"), "{}", gateway.log());
    let pid = home.path().join("pid");
    eventually("it is killed", SOON, || !lives(&pid)).await
}

#[tokio::test]
async fn it_dies_with_the_gateway() -> Result<()> {
    let home = tempfile::tempdir().expect("a directory");
    let fleet = scripted(&home, "echo $$ > pid; exec sleep 600", "timeout = \"5s\"");
    let mut gateway = Gateway::start(&fleet).await?;
    let mut caller = tokio::process::Command::from(gateway.command(&FENCE)?);
    let mut caller = caller.kill_on_drop(true).spawn().expect("picket runs");
    let pid = home.path().join("pid");
    eventually("it runs", SOON, || lives(&pid)).await?;
    gateway.kill();
    eventually("it has died too", SOON, || !lives(&pid)).await?;
    caller.kill().await.expect("killed");
    Ok(())
}
