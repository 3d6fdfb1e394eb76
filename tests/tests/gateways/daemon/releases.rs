//! Each kind of release, by the real daemon: one fence, to its end.

use std::os::unix::fs::PermissionsExt;

use picket_tests::peers::IpmiSim;
use picket_tests::{Answer, Bmc, Fleet, Gateway, Result, Said};
use serde_json::Value;

use crate::daemon::{SOON, one_node};

const FENCE: [&str; 5] = ["fence", "n1", "--yes", "--reason", "a test"];

/// The node as the command line tells it.
async fn status(gateway: &Gateway) -> Result<Value> {
    let said = gateway.picket(&["status", "n1", "--output", "json"]).await?;
    let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    Ok(told["nodes"][0].clone())
}

fn fenced(said: &Said, bmc: &IpmiSim) -> Result<()> {
    assert_eq!((said.code, bmc.is_on()?), (0, false), "{said:?}");
    Ok(())
}

#[tokio::test]
async fn a_webhook_that_accepts_is_asked_until_it_is_complete() -> Result<()> {
    let (bmc, webhook, fleet) = one_node().await?;
    webhook.answer(Answer::Accepted);
    webhook.answer_status(Answer::Accepted);
    let gateway = Gateway::start(&fleet).await?;
    let questions = || webhook.hooks().iter().filter(|hook| hook.path == "/status").count();
    let (said, ()) = tokio::try_join!(gateway.picket(&FENCE), async {
        picket_tests::peers::eventually("it is asked twice how far it is", SOON, || questions() >= 2).await?;
        let node = status(&gateway).await?;
        assert_eq!(node["phase"], "fenced", "accepted is not complete: {node:#}");
        webhook.answer_status(Answer::Complete);
        Ok(())
    })?;
    fenced(&said, &bmc)?;
    assert_eq!(status(&gateway).await?["phase"], "released");
    assert_eq!(webhook.releases().len(), 1, "what was accepted is not asked for again");
    assert!(questions() >= 3);
    Ok(())
}

#[tokio::test]
async fn a_program_is_told_and_its_answer_is_taken() -> Result<()> {
    let bmc = IpmiSim::builder().holds().start().await?;
    let home = tempfile::tempdir().expect("a directory");
    let (program, told) = (home.path().join("detach"), home.path().join("told.json"));
    // Each run leaves what it was told, and of its environment what is not the shell's own.
    let script = format!(
        "#!/bin/sh\nset -e\ncat >> {told}\necho >> {told}\nenv | grep -v '^\\(PWD\\|SHLVL\\|_\\|OLDPWD\\)=' > {told}.env\n\
         echo '{{\"status\": \"complete\", \"detail\": \"detached by a program\"}}'\n",
        told = told.display()
    );
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("executable");
    let fleet = Fleet::new()
        .node("n1", &Bmc::at(bmc.address()), &["detach"])
        .with(&format!("[releases.detach]\nkind = \"command\"\nprogram = {program:?}\nmax_life = \"10s\""));
    let gateway = Gateway::start(&fleet).await?;
    let said = gateway.picket(&FENCE).await?;
    fenced(&said, &bmc)?;
    assert!(said.out.contains("release detach: complete (detached by a program)"), "{said:?}");
    assert_eq!(status(&gateway).await?["phase"], "released");

    let text = std::fs::read_to_string(&told).expect("it was run");
    let asked: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(asked.len(), 1, "{text}");
    assert_eq!((&asked[0]["ask"], &asked[0]["node"]), (&"release".into(), &"n1".into()));
    assert!(asked[0]["evidence"]["confirmed_at"].is_string() && asked[0]["not_after"].is_string(), "{text}");
    let variables = std::fs::read_to_string(told.with_extension("json.env")).expect("written");
    assert!(variables.lines().all(|line| line.starts_with("PATH=")), "nothing of ours: {variables}");
    Ok(())
}

#[tokio::test]
async fn a_node_without_anything_to_let_go_says_so() -> Result<()> {
    let bmc = IpmiSim::builder().holds().start().await?;
    let fleet = Fleet::new()
        .node("n1", &Bmc::at(bmc.address()), &["nothing"])
        .with("[releases.nothing]\nkind = \"none\"");
    let gateway = Gateway::start(&fleet).await?;
    fenced(&gateway.picket(&FENCE).await?, &bmc)?;
    assert_eq!(status(&gateway).await?["phase"], "released");
    let back = gateway.picket(&["unfence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!((back.code, bmc.is_on()?), (0, true), "{back:?}");
    Ok(())
}
