//! `fence_picket` as others call it: Pacemaker's own fencer, and the command line. Before a real gateway and a real BMC.

use std::time::Duration;

use picket_tests::peers::{Fencer, IpmiSim, eventually};
use picket_tests::{Answer, Bmc, Fleet, Gateway, Result, Said, Webhook, fence_picket};

const SOON: Duration = Duration::from_secs(60);

struct Scene {
    gateway: Gateway,
    bmc: IpmiSim,
    webhook: Webhook,
}

impl Scene {
    /// A gateway over one node, r1n07, which the cluster calls db1.
    async fn set() -> Result<Self> {
        let (bmc, webhook) = (IpmiSim::builder().holds().start().await?, Webhook::start().await?);
        let device = Bmc::simulated(bmc.address());
        let fleet = Fleet::new()
            .with("[rules]\ndwell = \"500ms\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"")
            .node("r1n07", &device, &["detach"])
            .webhook("detach", &webhook.url(), "settle = \"0s\"");
        let gateway = Gateway::start(&fleet).await?;
        gateway.checked().await?;
        Ok(Self { gateway, bmc, webhook })
    }

    async fn agent(&self, arguments: &[&str]) -> Result<Said> {
        let endpoint = self.gateway.endpoint();
        fence_picket(&[&["--endpoint", &endpoint], arguments].concat()).await
    }

    /// A fencer that has the agent as a device for db1.
    async fn fencer(&self) -> Result<Fencer> {
        let fencer = Fencer::start().await?;
        let endpoint = format!("endpoint={}", self.gateway.endpoint());
        let map = "pcmk_host_map=db1:r1n07";
        let registered =
            fencer.admin(&["-R", "picket", "--agent", "fence_picket", "-o", &endpoint, "-o", map]).await?;
        assert_eq!(registered.code, 0, "{registered:?}\n{}", fencer.log());
        Ok(fencer)
    }
}

#[tokio::test]
async fn pacemaker_fences_a_node_and_brings_it_back() -> Result<()> {
    let scene = Scene::set().await?;
    let fencer = scene.fencer().await?;
    let off = fencer.admin(&["-F", "db1", "-t", "120"]).await?;
    assert_eq!(off.code, 0, "{off:?}\n{}\n{}", fencer.log(), scene.gateway.log());
    assert!(!scene.bmc.is_on()?, "told done, and on");
    assert_eq!(scene.webhook.releases().len(), 1, "its volumes are let go");
    let status = scene.gateway.picket(&["status", "r1n07"]).await?;
    assert!(status.out.contains("fence_picket"), "the hold has the agent's name: {status:?}");

    let again = fencer.admin(&["-F", "db1", "-t", "120"]).await?;
    assert_eq!((again.code, scene.webhook.releases().len()), (0, 1), "asked again it is so already");

    let on = fencer.admin(&["-U", "db1", "-t", "120"]).await?;
    assert_eq!(on.code, 0, "{on:?}\n{}", fencer.log());
    assert!(scene.bmc.is_on()?);
    assert_eq!(scene.webhook.releases().len(), 1);
    Ok(())
}

#[tokio::test]
async fn pacemaker_reboots_a_node_which_is_proven_off_in_between() -> Result<()> {
    let scene = Scene::set().await?;
    let fencer = scene.fencer().await?;
    let reboot = fencer.admin(&["-B", "db1", "-t", "120"]).await?;
    assert_eq!(reboot.code, 0, "{reboot:?}\n{}\n{}", fencer.log(), scene.gateway.log());
    assert_eq!(scene.webhook.releases().len(), 1, "proven off and released before it was told");
    let is_on = || scene.bmc.is_on().is_ok_and(|on| on);
    eventually("it is powered on again, by itself", SOON, is_on).await?;
    let history = scene.gateway.picket(&["history", "r1n07"]).await?;
    assert!(history.out.contains("learned"), "{history:?}");
    Ok(())
}

/// Pacemaker ends an agent when its time is over, and the gateway goes on all the same.
#[tokio::test]
async fn pacemakers_time_limit_ends_no_fence_and_who_asks_again_joins() -> Result<()> {
    let scene = Scene::set().await?;
    let fencer = scene.fencer().await?;
    scene.webhook.answer(Answer::Accepted);
    scene.webhook.answer_status(Answer::Accepted);
    let off = fencer.admin(&["-F", "db1", "-t", "10"]).await?;
    assert_ne!(off.code, 0, "its volumes are not let go: {off:?}");
    scene.webhook.wait_for(1, SOON).await?;
    assert!(!scene.bmc.is_on()?);
    scene.webhook.answer_status(Answer::Complete);
    let again = fencer.admin(&["-F", "db1", "-t", "120"]).await?;
    assert_eq!(again.code, 0, "{again:?}\n{}\n{}", fencer.log(), scene.gateway.log());
    let history = scene.gateway.picket(&["history", "r1n07"]).await?;
    assert_eq!(history.out.matches("r1n07").count(), 1, "it was one fence: {history:?}");
    assert_eq!(scene.webhook.releases().len(), 1);
    Ok(())
}

#[tokio::test]
async fn what_the_gateway_refuses_is_a_failure_to_pacemaker() -> Result<()> {
    let scene = Scene::set().await?;
    let fencer = scene.fencer().await?;
    let pause = scene
        .gateway
        .picket(&["pause", "--everything", "--for", "10m", "--reason", "a test", "--yes"])
        .await?;
    assert_eq!(pause.code, 0, "{pause:?}");
    let off = fencer.admin(&["-F", "db1", "-t", "60"]).await?;
    assert_ne!(off.code, 0, "{off:?}");
    assert!(fencer.log().contains("pause"), "why is told: {}", fencer.log());
    assert!(scene.bmc.is_on()?);
    assert_eq!(scene.webhook.releases().len(), 0);
    Ok(())
}

#[tokio::test]
async fn on_the_command_line_only_an_off_is_told_by_two() -> Result<()> {
    let mut scene = Scene::set().await?;
    let ask = async |scene: &Scene, line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        scene.agent(&words).await
    };
    let status = ask(&scene, "-o status -n r1n07").await?;
    assert_eq!((status.code, status.out.trim()), (0, "Status: ON"), "{status:?}");
    let monitor = ask(&scene, "-o monitor").await?;
    assert_eq!(monitor.code, 0, "{monitor:?}");
    assert_eq!(ask(&scene, "-o list").await?.out, "r1n07,\n");
    assert_eq!(ask(&scene, "-o list-status").await?.out, "r1n07,,ON\n");
    assert_eq!(ask(&scene, "-o on -n r1n07").await?.code, 0, "it is on, and nobody fenced it");
    let unknown = ask(&scene, "-o off -n r1n08").await?;
    assert!(unknown.code == 1 && unknown.err.contains("r1n07"), "names like it are told: {unknown:?}");
    assert_eq!(ask(&scene, "-o status -n r1n08").await?.code, 1);

    let off = ask(&scene, "-o off -n r1n07").await?;
    assert_eq!((off.code, scene.bmc.is_on()?), (0, false), "{off:?}");
    assert!(off.out.contains("Success: Powered OFF"), "{off:?}");
    let status = ask(&scene, "-o status -n r1n07").await?;
    assert_eq!((status.code, status.out.trim()), (2, "Status: OFF"), "{status:?}");

    // Another's hold keeps it off: that is no success.
    let hold =
        scene.gateway.picket(&["hold", "r1n07", "--holder", "ops", "--reason", "a test", "--yes"]).await?;
    assert_eq!(hold.code, 0, "{hold:?}");
    let on = ask(&scene, "-o on -n r1n07").await?;
    assert!(on.code == 1 && on.err.contains("ops"), "{on:?}");
    assert!(!scene.bmc.is_on()?);

    scene.gateway.stop().await?;
    for action in ["status", "off", "on", "monitor", "list"] {
        let said = ask(&scene, &format!("-o {action} -n r1n07")).await?;
        assert!(said.code == 1 && !said.err.is_empty(), "{action} without a gateway: {said:?}");
    }
    Ok(())
}
