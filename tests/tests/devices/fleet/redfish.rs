//! DMTF's redfishtool and OpenStack's sushy take it for a BMC.

use std::process::Output;
use std::time::Duration;

use crate::fleet::scene::{LOOKER, Result, Scene};
use picket_driver_sim::{Fault, RestorePolicy};
use picket_tests::peers::{ADMIN, OPERATOR, PASSWORD, test_python};
use tempfile::NamedTempFile;
use tokio::process::Command;

async fn redfishtool(scene: &Scene, arguments: &str) -> Result<Output> {
    redfishtool_as(scene, ADMIN, arguments).await
}

async fn redfishtool_as(scene: &Scene, user: &str, arguments: &str) -> Result<Output> {
    let tool = test_python()?.with_file_name("redfishtool");
    let address = scene.bmc.redfish_address().expect("it speaks Redfish").to_string();
    let login = ["-r", &address, "-u", user, "-p", PASSWORD, "-S", "Always"];
    let output = Command::new(tool).args(login).args(arguments.split(' ')).kill_on_drop(true).output().await;
    Ok(output.expect("redfishtool of tests/peers/requirements.txt"))
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What sushy says of power after it did that.
async fn sushy(scene: &Scene, ca: &NamedTempFile, how: &str, verb: &str) -> Result<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/redfish_look.py");
    let address = scene.bmc.redfish_address().expect("it speaks Redfish").to_string();
    let output = Command::new(test_python()?)
        .args([script, &address])
        .arg(ca.path())
        .args([ADMIN, PASSWORD, how, verb])
        .kill_on_drop(true)
        .output()
        .await
        .expect("python runs");
    Ok(said(&output).trim().to_owned())
}

fn trusted(pem: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), pem).expect("written");
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn redfishtool_switches_power_in_sessions_and_without() -> Result<()> {
    let scene = Scene::new().await;
    for how in ["Basic", "Session"] {
        let look = redfishtool(&scene, &format!("-A {how} Systems -1")).await?;
        assert!(look.status.success() && said(&look).contains("\"PowerState\": \"On\""), "{}", said(&look));
        let off = redfishtool(&scene, &format!("-A {how} Systems -1 reset ForceOff")).await?;
        assert!(off.status.success() && !scene.bmc.is_on(), "{}", said(&off));
        let look = redfishtool(&scene, &format!("-A {how} Systems -1")).await?;
        assert!(said(&look).contains("\"PowerState\": \"Off\""), "{}", said(&look));
        let on = redfishtool(&scene, &format!("-A {how} Systems -1 reset On")).await?;
        assert!(on.status.success() && scene.bmc.is_on(), "{}", said(&on));
    }
    let patch =
        redfishtool(&scene, "-A Basic Systems -1 patch {\"PowerRestorePolicy\":\"AlwaysOff\"}").await?;
    assert!(patch.status.success(), "{}", said(&patch));
    assert_eq!(scene.bmc.world().hold("n1").restore, RestorePolicy::AlwaysOff);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_look_is_refused_a_reset() -> Result<()> {
    let scene = Scene::new().await;
    for how in ["Basic", "Session"] {
        let look = redfishtool_as(&scene, LOOKER, &format!("-A {how} Systems -1")).await?;
        assert!(look.status.success() && said(&look).contains("\"PowerState\": \"On\""), "{}", said(&look));
        let off = redfishtool_as(&scene, LOOKER, &format!("-A {how} Systems -1 reset ForceOff")).await?;
        assert!(!off.status.success() && said(&off).contains("403") && scene.bmc.is_on(), "{}", said(&off));
        let hold = "patch {\"PowerRestorePolicy\":\"AlwaysOff\"}";
        let hold = redfishtool_as(&scene, LOOKER, &format!("-A {how} Systems -1 {hold}")).await?;
        assert!(!hold.status.success(), "{}", said(&hold));
        let off = redfishtool_as(&scene, OPERATOR, &format!("-A {how} Systems -1 reset ForceOff")).await?;
        assert!(off.status.success() && !scene.bmc.is_on(), "{}", said(&off));
        let on = redfishtool_as(&scene, OPERATOR, &format!("-A {how} Systems -1 reset On")).await?;
        assert!(on.status.success() && scene.bmc.is_on(), "{}", said(&on));
    }
    assert_ne!(scene.bmc.world().hold("n1").restore, RestorePolicy::AlwaysOff);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sushy_switches_power_and_checks_the_certificate() -> Result<()> {
    let scene = Scene::new().await;
    let ca = trusted(scene.authority());
    for how in ["session", "basic"] {
        assert_eq!(sushy(&scene, &ca, how, "look").await?, "On", "{how}");
        assert_eq!(sushy(&scene, &ca, how, "off").await?, "Off", "{how}");
        assert!(!scene.bmc.is_on());
        scene.bmc.change_certificate();
        assert_eq!(sushy(&scene, &ca, how, "on").await?, "On", "{how}: by the same authority");
        assert!(scene.bmc.is_on());
    }
    let now = scene.bmc.now();
    assert_eq!(scene.bmc.world().sessions("n1-redfish", now), 0, "it closes what it opened");
    let other = Scene::new().await;
    let stranger = trusted(other.authority());
    let refused = sushy(&scene, &stranger, "basic", "off").await?;
    assert!(refused.contains("CERTIFICATE_VERIFY_FAILED"), "{refused}");
    assert!(scene.bmc.is_on());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_seen_through_redfish_too() -> Result<()> {
    let scene = Scene::new().await;
    let ca = trusted(scene.authority());
    scene.bmc.fault(Fault::OffLied);
    assert_eq!(sushy(&scene, &ca, "basic", "off").await?, "Off");
    assert!(scene.bmc.is_on(), "it lied");
    scene.bmc.mend();
    assert_eq!(sushy(&scene, &ca, "basic", "on").await?, "On");
    scene.bmc.fault(Fault::SessionsFull);
    let full = redfishtool(&scene, "-A Session Systems -1").await?;
    assert!(!full.status.success(), "{}", said(&full));
    let alone = redfishtool(&scene, "-A Basic Systems -1").await?;
    assert!(alone.status.success(), "{}", said(&alone));
    scene.bmc.mend();
    scene.bmc.fault(Fault::Slow(Duration::from_millis(200)));
    scene.bmc.fault(Fault::Loss { percent: 10 });
    assert_eq!(sushy(&scene, &ca, "basic", "off").await?, "Off");
    assert!(!scene.bmc.is_on());
    Ok(())
}
