//! A role for a virtual machine, and the hypervisor on which it runs (S22).

use picket_tests::peers::{HANGS, until};
use picket_tests::{Result, Said};

use crate::doors::authority::Files;
use crate::doors::scene::Scene;

/// `vm1` and `vm2` run on `hv1`: their hypervisor first, so that no test waits until their own device is given up.
const FLEET: &str = r#"
[rules]
level_share = "10s"
fence_deadline = "300s"
dwell = "500ms"
longest_cycle = "5s"
silent_share = "5s"
[nodes.hv1]
labels = { rack = "r1" }
[nodes.hv1.devices.bmc]
driver = "sim"
machine = "hv1"
[nodes."vm[1-2]"]
labels = { rack = "r1" }
levels = [["hypervisor"], ["server"]]
[nodes."vm[1-2]".devices.server]
driver = "sim"
machine = "{node}"
runs_on = "hv1"
[nodes."vm[1-2]".devices.hypervisor]
driver = "parent"
grade = "learned"
"#;

const TENANT: &str = "[roles.tenants]\nrole = \"controller\"\ncallers = [\"tenant\"]\nhosts = \"vm1\"\n";

async fn says(scene: &Scene, files: &Files, arguments: &[&str]) -> Result<String> {
    let said = scene.picket(files, arguments).await?;
    assert_eq!(said.code, 0, "{arguments:?}: {said:?}");
    Ok(said.out)
}

async fn fence(scene: &Scene, files: &Files, node: &str) -> Result<Said> {
    scene.picket(files, &["fence", node, "--yes", "--reason", "a test"]).await
}

/// The status of the hypervisor, as the harness sees it.
async fn hypervisor(scene: &Scene) -> Result<String> {
    Ok(scene.gateway.picket(&["status", "hv1"]).await?.out)
}

#[tokio::test]
async fn a_role_for_one_machine_switches_off_neither_its_hypervisor_nor_what_else_runs_there() -> Result<()> {
    let scene = Scene::over(FLEET, TENANT).await?;
    scene.gateway.checked().await?;
    let tenant = scene.caller("tenant");
    let plan = says(&scene, &tenant, &["plan", "vm1"]).await?;
    // His role hides the hypervisor's name.
    assert!(plan.contains("(tenant) has the role controller for another node"), "it is told before: {plan}");
    // Its own device is within the role.
    let said = fence(&scene, &tenant, "vm1").await?;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("level 2") && !said.out.contains("which is proven off"), "{said:?}");
    assert!(hypervisor(&scene).await?.contains("normal"), "{}", scene.gateway.log());
    let other = scene.gateway.picket(&["status", "vm2"]).await?;
    assert!(other.out.contains("normal"), "{other:?}");
    for words in ["(tenant) has the role controller for another node", "picket retry vm1"] {
        assert!(said.out.contains(words), "no {words:?} in {said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn whoever_may_fence_the_hypervisor_too_is_named_on_it_and_its_settings_may_name_the_machine()
-> Result<()> {
    let scene = Scene::over(FLEET, TENANT).await?;
    scene.gateway.checked().await?;
    let db = scene.caller("spiffe://lab/ns/db");
    assert_eq!(fence(&scene, &db, "vm1").await?.code, 0, "{}", scene.gateway.log());
    let held = hypervisor(&scene).await?;
    let line = held.lines().find(|line| line.contains("child:vm1"));
    assert!(line.is_some_and(|line| line.contains("spiffe://lab/ns/db")), "{held}");
    let granted = FLEET.replace("[nodes.hv1]\n", "[nodes.hv1]\nfenced_for = \"vm[1-2]\"\n");
    let scene = Scene::over(&granted, TENANT).await?;
    scene.gateway.checked().await?;
    let tenant = scene.caller("tenant");
    assert_eq!(fence(&scene, &tenant, "vm1").await?.code, 0, "{}", scene.gateway.log());
    let held = hypervisor(&scene).await?;
    let line = held.lines().find(|line| line.contains("child:vm1"));
    assert!(line.is_some_and(|line| line.contains("tenant")), "{held}");
    Ok(())
}

/// What an admin sets aside for one machine is not set aside for what carries others too (S14, S22).
#[tokio::test]
async fn what_is_set_aside_for_a_machine_bars_its_hypervisor_all_the_same() -> Result<()> {
    // Only its cool-down bars the hypervisor.
    let budget = "[budget]\ncool_down = \"1h\"\nbrake_least = 1000\nmin_not_fenced = 0\nat_once = 3\n";
    let scene = Scene::over(FLEET, budget).await?;
    scene.gateway.checked().await?;
    for verb in ["fence", "unfence"] {
        let said = scene.gateway.picket(&[verb, "hv1", "--yes", "--reason", "a test"]).await?;
        assert_eq!(said.code, 0, "{said:?}");
    }
    let vm1 = ["fence", "vm1", "--yes", "--reason", "a test", "--override-budget", "it burns"];
    let said = scene.gateway.picket(&vm1).await?;
    assert_eq!(said.code, 0, "{said:?}");
    for words in ["evidence: learned, level 2", "hv1: blocked (cool down)"] {
        assert!(said.out.contains(words), "no {words:?} in {said:?}");
    }
    assert!(hypervisor(&scene).await?.contains("normal"), "{}", scene.gateway.log());
    Ok(())
}

/// S16, S22: who has a role for the hypervisor alone ends what its machine keeps of it, and nothing of the machine.
#[tokio::test]
async fn an_admin_of_the_hypervisor_alone_ends_a_machine_s_hold_on_it() -> Result<()> {
    let role = "[roles.hypervisors]\nrole = \"admin\"\ncallers = [\"hv-admin\"]\nhosts = \"hv1\"\n";
    let scene = Scene::over(FLEET, role).await?;
    scene.gateway.checked().await?;
    let db = scene.caller("spiffe://lab/ns/db");
    assert_eq!(fence(&scene, &db, "vm1").await?.code, 0, "{}", scene.gateway.log());
    assert!(hypervisor(&scene).await?.contains("child:vm1"), "{}", scene.gateway.log());
    let admin = scene.caller("hv-admin");
    let reason = ["--yes", "--reason", "it carries others"];
    for (word, code) in [("unfence", 7), ("retire", 7), ("stand-down", 7)] {
        let said = scene.picket(&admin, &[&[word, "vm1"][..], &reason[..]].concat()).await?;
        assert_eq!(said.code, code, "{word}: {said:?}");
    }
    let ended = ["unhold", "hv1", "--holder", "child:vm1"];
    let said = scene.picket(&admin, &[&ended[..], &reason[..]].concat()).await?;
    assert_eq!(said.code, 0, "{said:?}");
    until("the hypervisor is back", HANGS, async || Ok(hypervisor(&scene).await?.contains("normal"))).await
}
