//! `picket quickstart` where something is missing or does not start: what it says, and that nothing is left.

use crate::common::package::Package;
use crate::common::{ended, number, run};
use rustix::process::{Pid, test_kill_process};

/// A fleet of one machine that runs until it is told to end, and says who it is.
const FLEET: &str =
    "echo $$ >$PACKAGE/fleet.pid\necho rack1-1 ipmi 127.0.0.1:9\necho ready: 1 machines\nexec sleep 600\n";

/// The folders of tours that are left.
fn left(package: &Package) -> Vec<String> {
    let all = std::fs::read_dir(package.path()).expect("read");
    let names = all.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("picket-quickstart-")).collect()
}

/// Whether the fleet of a package was there and has ended.
fn fleet_has_ended(package: &Package) -> bool {
    let text = std::fs::read_to_string(package.at("fleet.pid")).expect("it was started");
    let pid = text.trim().parse().ok().and_then(Pid::from_raw).expect("a number");
    test_kill_process(pid).is_err()
}

#[tokio::test]
async fn a_program_that_is_missing_is_told_with_where_it_was_looked_for() {
    let package = Package::new();
    let ran = run(package.picket(&["quickstart", "--yes"])).await;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    let here = package.path().display().to_string();
    for part in ["picketd was not found", &here, "/usr/bin, /bin", "cargo build --release -p picket-gateway"]
    {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let package = package.with("picketd", "exit 0\n");
    let ran = run(package.picket(&["quickstart", "--yes"])).await;
    assert!(ran.code == 2 && ran.err.contains("picket-fleet was not found"), "{ran:?}");
    assert_eq!(left(&package), [""; 0]);
}

#[tokio::test]
async fn without_a_terminal_it_wants_yes() {
    let package = Package::new().with("picketd", "exit 0\n").with("picket-fleet", FLEET);
    let ran = run(package.picket(&["quickstart"])).await;
    assert!(ran.code == 2 && ran.err.contains("say --yes"), "{ran:?}");
    let ran = run(package.picket(&["quickstart", "--yes", "-o", "json"])).await;
    assert!(ran.code == 2 && ran.err.contains("leave -o out"), "{ran:?}");
    assert!(!package.at("fleet.pid").exists() && left(&package).is_empty());
}

#[tokio::test]
async fn a_gateway_that_does_not_start_is_told_by_its_log_and_the_fleet_ends() {
    let package =
        Package::new().with("picket-fleet", FLEET).with("picketd", "echo no room here >&2\nexit 75\n");
    let ran = run(package.picket(&["quickstart", "--yes"])).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("picketd did not start") && ran.err.contains("no room here"), "{}", ran.err);
    assert!(fleet_has_ended(&package));
    // There is something to look at.
    assert!(ran.out.contains("stays") && left(&package).len() == 1, "{}", ran.out);
}

#[tokio::test]
async fn a_fleet_that_does_not_start_is_told_by_its_log() {
    let package =
        Package::new().with("picketd", "exit 0\n").with("picket-fleet", "echo nothing is free >&2\nexit 1\n");
    let ran = run(package.picket(&["quickstart", "--yes"])).await;
    assert!(ran.code == 1 && ran.err.contains("picket-fleet did not start"), "{ran:?}");
    assert!(ran.err.contains("nothing is free"), "{}", ran.err);
}

#[tokio::test]
async fn an_interrupt_while_it_starts_ends_both_and_leaves_no_file() {
    let gateway = "echo up >$PACKAGE/gateway.up\nexec sleep 600\n";
    let package = Package::new().with("picket-fleet", FLEET).with("picketd", gateway);
    let mut command = package.picket(&["quickstart", "--yes"]);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    let up = async {
        while !package.at("gateway.up").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(120), up).await.expect("the gateway is started");
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw).expect("it runs");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    let ended = tokio::time::timeout(std::time::Duration::from_secs(120), child.wait_with_output());
    let ended = ended.await.expect("it ends").expect("it ran");
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert!(fleet_has_ended(&package) && left(&package).is_empty());
}

/// Nothing is left to run of it, although nobody was there to end it.
#[tokio::test]
async fn a_kill_ends_both_programs() {
    let gateway = "echo $$ >$PACKAGE/gateway.pid\nexec sleep 600\n";
    let package = Package::new().with("picket-fleet", FLEET).with("picketd", gateway);
    let mut command = package.picket(&["quickstart", "--yes"]);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it runs");
    let (fleet, gateway) = (number(&package.at("fleet.pid")).await, number(&package.at("gateway.pid")).await);
    child.kill().await.expect("killed");
    ended(fleet).await;
    ended(gateway).await;
}

#[tokio::test]
async fn a_folder_that_is_there_is_not_taken() {
    let package = Package::new().with("picketd", "exit 0\n").with("picket-fleet", FLEET);
    let here = package.path().display().to_string();
    let ran = run(package.picket(&["quickstart", "--yes", "--dir", &here])).await;
    assert!(ran.code == 2 && ran.err.contains("it is there already"), "{ran:?}");
    assert!(package.at("picket").exists());
}
