//! powerman, with its resident ipmipower, over several of them at once.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use crate::fleet::scene::{Result, clock, eventually, options};
use picket_fleet::{Bmc, Fleet};
use picket_tests::peers::{ADMIN, PASSWORD, fresh_address};
use tokio::process::Command;

/// Some distributions keep it outside of users' search paths.
const POWERMAND: &str = "/usr/sbin/powermand";

#[tokio::test(flavor = "multi_thread")]
async fn powerman_switches_them_all() -> Result<()> {
    let all: Vec<_> = (1..=4).map(|number| options(&format!("n{number}"), fresh_address())).collect();
    let fleet = Fleet::start(&all, &clock()).await.expect("free addresses");
    let hosts: Vec<String> = fleet.bmcs().map(|bmc| bmc.address().to_string()).collect();
    let door = fresh_address();
    let mut settings = format!(
        "include \"/etc/powerman/ipmipower.dev\"\nlisten \"{door}\"\ndevice \"ipmi\" \"ipmipower\" \
         \"/usr/sbin/ipmipower -D LAN_2_0 -W opensesspriv -I 17 -u {ADMIN} -p {PASSWORD} --wait-until-on \
         --wait-until-off -h {} |&\"\n",
        hosts.join(",")
    );
    for (name, host) in all.iter().map(|one| &one.name).zip(fleet.bmcs().map(|bmc| bmc.address().ip())) {
        // ipmipower answers without the port.
        let _ = writeln!(settings, "node {name:?} \"ipmi\" \"{host}\"");
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), settings).expect("written");
    let mut daemon = Command::new(POWERMAND)
        .args(["-f", "-c"])
        .arg(file.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("powermand of the package powerman");
    let door = door.to_string();
    let powerman = async |arguments: &[&str]| {
        let output = Command::new("powerman").args(["-h", &door]).args(arguments).output().await;
        String::from_utf8_lossy(&output.expect("powerman runs").stdout).into_owned()
    };
    eventually("powerman sees them on", async || {
        powerman(&["-q"]).await.lines().any(|line| line.starts_with("on:") && line.ends_with("n[1-4]"))
    })
    .await;
    let said = powerman(&["-0", "n[1-4]"]).await;
    assert!(said.contains("Command completed successfully"), "{said}");
    assert!(fleet.bmcs().all(|bmc: &Arc<Bmc>| !bmc.is_on()), "{said}");
    let said = powerman(&["-1", "n2"]).await;
    assert!(said.contains("Command completed successfully"), "{said}");
    let on: Vec<&str> = fleet.bmcs().filter(|bmc| bmc.is_on()).map(|bmc| bmc.name()).collect();
    assert_eq!(on, ["n2"]);
    daemon.start_kill().expect("it was ours");
    let _ = tokio::time::timeout(Duration::from_secs(30), daemon.wait()).await;
    Ok(())
}
