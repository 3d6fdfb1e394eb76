//! `picket init`: a first node's BMC is asked by reads alone, and the settings that are written are those that work.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use picket_tests::peers::{ADMIN, Bmc17, IpmiSim, Knob, OPERATOR, PASSWORD, SYSTEMS, Sushy, fresh_address};
use picket_tests::{PeerError, Result, Said, picketd, program};
use tempfile::TempDir;
use tokio::process::Command;

/// A folder for settings, and a password beside it.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new(password: &str) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(PeerError::io("create a directory"))?;
        let desk = Self { folder };
        let secret = desk.secret();
        std::fs::write(&secret, password).map_err(PeerError::io("write a password"))?;
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600))
            .map_err(PeerError::io("close a password"))?;
        Ok(desk)
    }

    fn secret(&self) -> PathBuf {
        self.folder.path().join("secret")
    }

    fn settings(&self) -> PathBuf {
        self.folder.path().join("etc/picket.toml")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.settings()).unwrap_or_default()
    }

    async fn init(&self, driver: &str, address: SocketAddr, user: &str, more: &[&str]) -> Result<Said> {
        let mut command = Command::new(program("picket")?);
        command
            .args(["init", "n1", "--driver", driver, "--user", user, "--address"])
            .arg(address.ip().to_string());
        command.args(["--port", &address.port().to_string(), "--password-file"]).arg(self.secret());
        command
            .arg("--dir")
            .arg(self.folder.path().join("etc"))
            .args(more)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command.output().await.map_err(PeerError::io("run picket init"))?;
        let said = Said::of(output);
        assert!(!format!("{said:?}").contains(PASSWORD), "a secret is told: {said:?}");
        Ok(said)
    }

    /// The settings that were written are right, and their device answers.
    async fn works(&self) -> Result<()> {
        let settings = self.settings();
        let checked = picketd(&settings, &["--check"], &[]).await?;
        assert_eq!(checked.code, 0, "{checked:?}\n{}", self.text());
        let probed = picketd(&settings, &["probe"], &[]).await?;
        assert!(probed.code == 0 && probed.out.contains("power: on"), "{probed:?}");
        Ok(())
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test]
async fn a_bmc_that_knows_suite_3_alone_wants_a_person_s_word() -> Result<()> {
    let (sim, desk) = (IpmiSim::builder().holds().start().await?, Desk::new(PASSWORD)?);
    let refused = desk.init("ipmi", sim.address(), OPERATOR, &[]).await?;
    assert_eq!(refused.code, 1, "{refused:?}");
    for part in ["cipher suites", "--allow-suite-3", "nothing was written"] {
        assert!(refused.err.contains(part), "{part}: {refused:?}");
    }
    assert!(!desk.settings().exists());
    let done = desk.init("ipmi", sim.address(), OPERATOR, &["--allow-suite-3"]).await?;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("the machine is on") && done.out.contains("restore"), "{done:?}");
    let text = desk.text();
    assert!(text.contains("cipher_suites = [17, 3]") && text.contains("# identity = { uuid"), "{text}");
    desk.works().await?;
    // Whatever was asked: nothing was switched.
    assert!(sim.is_on()?);
    Ok(())
}

#[tokio::test]
async fn what_a_bmc_refuses_is_told_in_its_own_words() -> Result<()> {
    let (bmc, desk) = (Bmc17::start().await?, Desk::new("not-the-password")?);
    let refused = desk.init("ipmi", bmc.address(), ADMIN, &[]).await?;
    let secret = shown(&desk.secret());
    assert!(
        refused.code == 1 && refused.err.contains("password") && refused.err.contains(&secret),
        "{refused:?}"
    );
    let desk = Desk::new(PASSWORD)?;
    bmc.set(Knob::Privilege(2))?;
    let refused = desk.init("ipmi", bmc.address(), ADMIN, &[]).await?;
    assert!(refused.code == 1 && refused.err.contains("the privilege operator"), "{refused:?}");
    let refused = desk.init("ipmi", fresh_address(), ADMIN, &[]).await?;
    assert!(refused.code == 1 && refused.err.contains("UDP"), "{refused:?}");
    assert!(!desk.settings().exists());
    Ok(())
}

#[tokio::test]
async fn a_redfish_service_is_believed_by_its_ca_or_by_a_person_who_compared() -> Result<()> {
    let (sushy, desk) = (Sushy::in_sessions().await?, Desk::new(PASSWORD)?);
    let system = ["--system", SYSTEMS[0]];
    let refused = desk.init("redfish", sushy.address(), ADMIN, &system).await?;
    let pin = refused
        .err
        .lines()
        .find_map(|line| line.split_once("--bmc-certificate ").map(|(_, pin)| pin.trim().to_owned()));
    let pin = pin.unwrap_or_else(|| panic!("no digest: {refused:?}"));
    assert!(refused.code == 1 && pin.len() == 64, "{refused:?}");
    let done = desk
        .init("redfish", sushy.address(), ADMIN, &[&system[..], &["--bmc-certificate", &pin]].concat())
        .await?;
    assert_eq!(done.code, 0, "{done:?}");
    desk.works().await?;
    let ca = shown(&sushy.ca_file());
    let several = desk.init("redfish", sushy.address(), ADMIN, &["--bmc-ca", &ca, "--force"]).await?;
    assert!(
        several.code == 1 && several.err.contains("--system ID") && several.err.contains(SYSTEMS[1]),
        "{several:?}"
    );
    let forced = desk
        .init("redfish", sushy.address(), ADMIN, &[&system[..], &["--bmc-ca", &ca, "--force"]].concat())
        .await?;
    assert!(forced.code == 0 && desk.text().contains("ca_file"), "{forced:?}");
    desk.works().await?;
    assert!(sushy.is_on(SYSTEMS[0])? && sushy.is_on(SYSTEMS[1])?);
    Ok(())
}
