//! `picketd --check` looks besides at what a start needs: the store, the audit, the receipts' key, the socket's directory. It
//! makes nothing, and a gateway that runs is no fault.

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;

use picket_tests::peers::IpmiSim;
use picket_tests::{Bmc, Fleet, Gateway, Result, picketd};

use crate::bad_input::home::{GOOD, Home, PASSWORD};

/// The names in the directory.
fn names(home: &Home) -> BTreeSet<String> {
    let found = std::fs::read_dir(home.path("")).expect("it is there").flatten();
    found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// What `--check` finds, a line each, without the head; it ends with this code, and a start that fails says the first.
async fn found(home: &Home, code: i32) -> Vec<String> {
    let before = names(home);
    let said = home.says(&["--check"]).await;
    assert_eq!((said.code, said.out.as_str(), names(home)), (code, "", before), "nothing is made: {said:?}");
    let mut lines = said.err.lines().map(str::to_owned);
    let head = lines.next();
    assert_eq!(head.as_deref(), Some("picketd: the settings are right, and it could not start by them:"));
    lines.collect()
}

#[tokio::test]
async fn directories_that_are_not_there_are_told_all_at_once() {
    let wanted = GOOD
        .replace("{home}/picket.sock", "{home}/run/picket.sock")
        .replace("{home}/picket.redb", "{home}/lib/picket.redb");
    let home = Home::with(&wanted);
    let found = found(&home, 75).await;
    assert_eq!(found.len(), 3, "{found:#?}");
    for (line, words) in found.iter().zip([
        ["store.path: ", "lib is not there", "install -d -m 700"],
        ["audit.path: ", "lib", "No such file"],
        ["listen.unix: ", "run/picket.sock", "install -d -m 750"],
    ]) {
        assert!(words.iter().all(|word| line.contains(word)), "{words:?} in {line}");
    }
}

#[tokio::test]
async fn what_is_there_and_of_no_use_is_told_all_at_once() {
    let home = Home::with(GOOD);
    home.secret("picket.receipt.pem", "no key", 0o640);
    home.write("picket.sock", "precious");
    std::fs::create_dir(home.path("picket.audit")).expect("made");
    home.mode("picket.audit", 0o777);
    home.write("picket.redb", "x");
    home.mode("picket.redb", 0o666);
    let found = found(&home, 78).await;
    assert_eq!(found.len(), 4, "{found:#?}");
    for (line, words) in found.iter().zip([
        ["store.path: picket.redb is open to everybody", "chmod 600"],
        ["audit.path: picket.audit is open to others", "chmod 700"],
        ["receipts.key_file: the receipts' key file picket.receipt.pem has mode 640", "chmod 600"],
        ["listen.unix: picket.sock is there and is no socket", "left alone"],
    ]) {
        assert!(words.iter().all(|word| line.contains(word)), "{words:?} in {line}");
    }
    assert_eq!(std::fs::read_to_string(home.path("picket.sock")).expect("it is there"), "precious");
}

#[tokio::test]
async fn a_store_that_is_gone_and_a_key_that_is_none() {
    let home = Home::with(GOOD);
    home.write("picket.redb.lock", "pid 1\nstore 0123\n");
    home.secret("picket.receipt.pem", "no key", 0o600);
    let found = found(&home, 78).await;
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].contains("store.path: the store picket.redb is gone"), "{found:#?}");
    assert!(found[1].contains("receipts.key_file: ") && found[1].contains("move it away"), "{found:#?}");
}

#[tokio::test]
async fn faults_of_the_settings_are_told_with_them() {
    let home = Home::with(&GOOD.replace("[releases.detach]", "[rules]\ndwel = \"1s\"\n[releases.detach]"));
    home.write("picket.sock", "precious");
    let said = home.says(&["--check"]).await;
    let lines: Vec<&str> = said.err.lines().collect();
    assert_eq!((said.code, lines.len()), (78, 4), "{said:?}");
    assert!(lines[0].contains("the settings are wrong") && lines[1].contains("rules.dwel"), "{lines:#?}");
    assert!(lines[2].contains("could not start") && lines[3].starts_with("listen.unix: "), "{lines:#?}");

    // Of a table that is wrong itself the defaults are not looked at.
    let home = Home::with(&GOOD.replace("path = \"{home}/picket.redb\"", "path = \"relative\""));
    let said = home.says(&["--check"]).await;
    assert!(said.err.contains("store.path") && !said.err.contains("could not start"), "{said:?}");
}

#[tokio::test]
async fn what_the_unit_makes_at_the_start_is_no_fault() {
    let defaults = GOOD.replace("[listen]\nunix = \"{home}/picket.sock\"\n", "");
    let said = Home::with(&defaults).says(&["--check"]).await;
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert!(said.out.starts_with("picket.toml: right, with 2 nodes\n"), "{said:?}");
    if !std::path::Path::new("/run/picket").exists() {
        assert!(said.out.contains("note: /run/picket is not there: the systemd unit makes it"), "{said:?}");
    }
}

#[tokio::test]
async fn a_gateway_that_runs_is_no_fault() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let mut gateway = Gateway::start(&Fleet::new().node("n1", &Bmc::at(bmc.address()), &[])).await?;
    let checked =
        picketd(&gateway.settings_file(), &["--check"], &[("PICKET_TEST_BMC_PASSWORD", PASSWORD)]).await?;
    assert_eq!((checked.code, checked.err.as_str()), (0, ""), "{checked:?}");
    assert_eq!(gateway.picket(&["nodes"]).await?.code, 0, "it goes on");
    assert!(gateway.stop().await?.success());
    // What it leaves behind is no fault either: the store, the audit, the key; and a socket at which nobody answers.
    let checked =
        picketd(&gateway.settings_file(), &["--check"], &[("PICKET_TEST_BMC_PASSWORD", PASSWORD)]).await?;
    assert_eq!((checked.code, checked.err.as_str()), (0, ""), "{checked:?}");
    let home = Home::with(GOOD);
    drop(UnixListener::bind(home.path("picket.sock")).expect("bound"));
    assert_eq!(home.says(&["--check"]).await.code, 0);
    Ok(())
}
