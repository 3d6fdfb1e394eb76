//! ipmitool and FreeIPMI's ipmipower take it for a BMC.

use crate::fleet::scene::{Result, Scene};
use picket_driver_sim::RestorePolicy;
use picket_tests::peers::{OPERATOR, PASSWORD, PowerWord};

#[tokio::test(flavor = "multi_thread")]
async fn ipmitool_switches_power_by_either_suite() -> Result<()> {
    let scene = Scene::new().await;
    for suite in [17, 3] {
        let tool = scene.ipmitool(suite);
        assert_eq!(tool.power().await?, PowerWord::On);
        assert_eq!(tool.run("chassis power off").await?.trim(), "Chassis Power Control: Down/Off");
        assert_eq!(tool.power().await?, PowerWord::Off);
        assert!(!scene.bmc.is_on());
        assert_eq!(tool.run("chassis power on").await?.trim(), "Chassis Power Control: Up/On");
        assert_eq!(tool.power().await?, PowerWord::On);
        assert!(scene.bmc.is_on());
    }
    assert_eq!(scene.sessions(), 0, "it closes what it opened");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ipmitool_finds_the_suite_by_itself_and_asks_what_it_asks_of_any_bmc() -> Result<()> {
    let scene = Scene::new().await;
    let tool = scene.ipmitool(17);
    let info = tool.run("mc info").await?;
    assert!(info.contains("IPMI Version              : 2.0"), "{info}");
    let status = tool.run("chassis status").await?;
    assert!(status.contains("System Power         : on"), "{status}");
    assert!(status.contains("Power Restore Policy : previous"), "{status}");
    tool.run("chassis policy always-off").await?;
    assert_eq!(scene.bmc.world().hold("n1").restore, RestorePolicy::AlwaysOff);
    let status = tool.run("chassis status").await?;
    assert!(status.contains("Power Restore Policy : always-off"), "{status}");
    let list = tool.run("chassis policy list").await?;
    assert!(list.contains("always-on") && list.contains("previous"), "{list}");
    tool.run("chassis bootdev pxe").await?;
    let boot = tool.run("chassis bootparam get 5").await?;
    assert!(boot.contains("Force PXE"), "{boot}");
    let watchdog = tool.run("mc watchdog get").await?;
    assert!(watchdog.contains("Started/Running"), "{watchdog}");
    tool.run("mc watchdog off").await?;
    assert!(!scene.bmc.world().hold("n1").watchdog);
    let guid = tool.run("mc guid").await?;
    assert!(guid.contains("System GUID"), "{guid}");
    let auth = tool.run("channel authcap 1 4").await?;
    assert!(auth.contains("Channel supports IPMI v2.0 : yes"), "{auth}");
    let suites = tool.run("channel getciphers ipmi 1").await?;
    assert!(
        suites.lines().filter(|line| line.starts_with("3 ") || line.starts_with("17 ")).count() == 2,
        "{suites}"
    );
    let session = tool.run("session info active").await?;
    assert!(session.contains("session handle                : 1"), "{session}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_is_refused() -> Result<()> {
    let scene = Scene::new().await;
    let wrong = scene.ipmitool(17).login(OPERATOR, "guess").run("-L OPERATOR chassis power off").await;
    assert!(wrong.is_err(), "{wrong:?}");
    let above = scene.ipmitool(17).login(OPERATOR, PASSWORD).run("-L ADMINISTRATOR chassis power off").await;
    assert!(above.is_err(), "{above:?}");
    assert!(scene.bmc.is_on());
    scene.ipmitool(17).login(OPERATOR, PASSWORD).run("-L OPERATOR chassis power off").await?;
    assert!(!scene.bmc.is_on());
    assert!(
        scene.sessions() <= 2,
        "who leaves in the middle of a login leaves its slot taken, until it idles out"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ipmipower_switches_power_by_either_suite() -> Result<()> {
    let scene = Scene::new().await;
    for suite in [17, 3] {
        let power = scene.ipmipower(suite);
        assert_eq!(power.power().await?, PowerWord::On);
        assert_eq!(power.run("--off --wait-until-off").await?, "ok");
        assert_eq!(power.power().await?, PowerWord::Off);
        assert!(!scene.bmc.is_on());
        assert_eq!(power.run("--on --wait-until-on").await?, "ok");
        assert!(scene.bmc.is_on());
    }
    assert_eq!(scene.sessions(), 0, "it closes what it opened");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_presence_ping_is_answered() -> Result<()> {
    let scene = Scene::new().await;
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    socket.connect(scene.bmc.address()).await.expect("loopback");
    socket.send(&[6, 0, 255, 6, 0, 0, 0x11, 0xBE, 0x80, 42, 0, 0]).await.expect("sent");
    let mut answer = [0; 64];
    let heard = tokio::time::timeout(std::time::Duration::from_secs(30), socket.recv(&mut answer)).await;
    let len = heard.expect("an answer").expect("received");
    assert_eq!((len, answer[8], answer[9], answer[20]), (28, 0x40, 42, 0x81));
    Ok(())
}
