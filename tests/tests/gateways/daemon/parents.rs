//! A node that runs on another node, over simulated machines: fenced by its parent, and brought back with it (S22).

use picket_tests::{Fleet, Gateway, Result};

/// `vm1` runs on `hv1`, beside `vm2`: its parent first, so that no test waits until its own device is given up.
fn fleet() -> Fleet {
    let mut text = String::from("[templates.machine.devices.bmc]\ndriver = \"sim\"\nmachine = \"{node}\"\n");
    text += "[nodes.\"hv[1-2]\"]\ntemplate = \"machine\"\n";
    for vm in ["vm1", "vm2"] {
        text += &format!(
            "[nodes.{vm}]\nlevels = [[\"hypervisor\"], [\"server\"]]\nreleases = [\"detach\"]\n\
             [nodes.{vm}.devices.server]\ndriver = \"sim\"\nmachine = \"{vm}\"\nruns_on = \"hv1\"\n\
             [nodes.{vm}.devices.hypervisor]\ndriver = \"parent\"\ngrade = \"learned\"\n"
        );
    }
    Fleet::new().with(&text).with("[releases.detach]\nkind = \"none\"\nsettle = \"0s\"")
}

async fn says(gateway: &Gateway, arguments: &[&str]) -> Result<String> {
    let said = gateway.picket(arguments).await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", gateway.log());
    Ok(said.out)
}

fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

#[tokio::test]
async fn a_node_is_fenced_by_the_machine_on_which_it_runs_and_brought_back_with_it() -> Result<()> {
    let gateway = Gateway::start(&fleet()).await?;
    gateway.checked().await?;
    let checked = says(&gateway, &["check", "vm1"]).await?;
    has(&checked, &["hypervisor", "ready"]);
    let plan = says(&gateway, &["plan", "vm1"]).await?;
    has(&plan, &["fences hv1", "takes away too vm2"]);
    let fenced = says(&gateway, &["fence", "vm1", "--yes", "--reason", "a test"]).await?;
    has(&fenced, &["hypervisor", "runs on hv1, which is proven off", "release detach: complete"]);
    let parent = says(&gateway, &["status", "hv1"]).await?;
    has(&parent, &["released", "child:vm1"]);
    assert!(!parent.contains("release "), "the volumes of vm1 alone: {parent}");
    // An admin ends the child's hold, and the parent stays off while something of the child relies on it.
    let ended =
        gateway.picket(&["unfence", "hv1", "--holder", "child:vm1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(ended.code, 3, "{ended:?}");
    has(
        &ended.out,
        &["hold child:vm1 ended by", "it proves nothing of its child any more", "still held by child:vm1"],
    );
    let held =
        gateway.picket(&["fence", "hv2", "--holder", "child:vm1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(held.code, 2, "{held:?}");
    says(&gateway, &["unfence", "vm1", "--yes", "--reason", "a test"]).await?;
    has(&says(&gateway, &["status", "hv1"]).await?, &["normal"]);
    Ok(())
}
