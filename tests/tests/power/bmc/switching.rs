//! On, off, already off, off that takes its time; with both kinds of BMC.

use std::time::Duration;

use picket_proto::v1::{Grade, OutcomeKind, Phase, Reason};
use picket_tests::peers::{ADMIN, Bmc17, IpmiSim, Ipmipower, Ipmitool, Knob, PowerWord};
use picket_tests::{Bmc, Result};
use serde_json::Value;

use crate::bmc::host::{Host, as_child, by_script, with_holds};
use crate::bmc::scene::{LISTEN, Plan};

#[tokio::test]
async fn a_machine_is_switched_off_proven_off_let_go_and_brought_back() -> Result<()> {
    let host = Host::on(with_holds).await?;
    assert_eq!(host.onlookers().await?, PowerWord::On);
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))]).start().await?;

    // By the command line, as an operator would.
    let fenced = scene.gateway.picket(&["fence", "n1", "--yes", "--reason", "a test", "-o", "json"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}");
    let answer: Value = serde_json::from_str(&fenced.out).expect("JSON");
    let result = &answer["results"][0];
    println!("{result:#}");
    assert_eq!(
        (&result["outcome"]["kind"], &result["outcome"]["released"]),
        (&"fenced".into(), &true.into())
    );
    assert_eq!(
        result["evidence"]["grade"], "learned",
        "by the check at the start, and nobody else has said it"
    );
    assert_eq!(result["evidence"]["devices"][0]["long_window"], Value::Null, "it was seen to fall");
    assert!(result["evidence"]["devices"][0]["readings"].as_u64() >= Some(2), "{result:#}");
    assert_eq!(host.onlookers().await?, PowerWord::Off);
    scene.released_while_off(1);
    let fence = scene.fences().await?.remove(0);
    let confirmed = fence.evidence.and_then(|evidence| evidence.confirmed_at).expect("confirmed");
    let confirmed = confirmed.try_into().expect("a time");
    assert_eq!(host.observer.listen(LISTEN).await, []);
    assert_eq!(host.observer.after(confirmed), []);
    assert_eq!(host.power_events(), ["on", "off"]);

    let back = scene.gateway.picket(&["unfence", "n1", "--yes", "--reason", "a test"]).await?;
    println!("{}", back.out);
    assert_eq!(back.code, 0, "{back:?}");
    assert_eq!(host.onlookers().await?, PowerWord::On);
    host.is_alive().await?;
    assert_eq!(host.power_events(), ["on", "off", "on"]);
    assert_eq!(scene.node().await?.phase(), Phase::Normal);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_second_implementation_with_suite_17() -> Result<()> {
    let bmc = Bmc17::with_suites("17").await?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN))]).start().await?;
    let (tool, power) = (Ipmitool::new(bmc.address()).suite(17), Ipmipower::new(bmc.address()).suite(17));
    let fenced = scene.fence().await?;
    fenced.tell("bmc17");
    assert_eq!(fenced.is_fenced().evidence().grade(), Grade::Learned);
    assert_eq!((tool.power().await?, power.power().await?), (PowerWord::Off, PowerWord::Off));
    scene.released_while_off(1);
    scene.unfence().await?.is_back();
    assert_eq!((tool.power().await?, power.power().await?), (PowerWord::On, PowerWord::On));
    let switched: Vec<String> =
        bmc.commands().into_iter().filter(|what| what == "off" || what == "on").collect();
    assert_eq!(switched, ["off", "on"], "each was sent once");
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_bmc_that_acknowledges_before_the_fall() -> Result<()> {
    let host = Host::on(as_child).await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))]).start().await?;
    let fenced = scene.fence().await?;
    fenced.tell("ipmi_sim with its machine as a child");
    fenced.is_fenced().dead_since(&host.observer).await;
    assert_eq!(host.onlookers().await?, PowerWord::Off);
    scene.released_while_off(1);
    scene.unfence().await?.is_back();
    host.is_alive().await
}

/// Off must hold for longer than the longest power cycle, and the off is sent at its beginning and at its end.
const WINDOW: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_machine_that_is_off_already_gets_an_off_all_the_same() -> Result<()> {
    let host = Host::off(by_script).await?;
    assert_eq!(host.onlookers().await?, PowerWord::Off);
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))]).start().await?;
    let fenced = scene.fence().await?;
    fenced.tell("already off, ipmi_sim");
    assert_eq!(fenced.is_fenced().long_window(), "not seen on before the off");
    assert!(fenced.took >= WINDOW, "{:?}", fenced.took);
    scene.released_while_off(1);
    scene.unfence().await?.is_back();
    assert_eq!(host.onlookers().await?, PowerWord::On);
    host.is_alive().await
}

#[tokio::test]
async fn so_does_a_bmc_that_takes_it_and_one_that_refuses_it_as_already_off() -> Result<()> {
    for (refuses, words, note) in
        [(false, "not seen on before the off", "off"), (true, "already off", "off refused")]
    {
        let bmc = Bmc17::start().await?;
        bmc.press(false)?;
        if refuses {
            bmc.set(Knob::RefuseAgain)?;
        }
        let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN))]).start().await?;
        let fenced = scene.fence().await?;
        fenced.tell("already off, bmc17");
        assert_eq!(fenced.is_fenced().long_window(), words);
        assert!(fenced.took >= WINDOW, "{:?}", fenced.took);
        let offs = bmc.commands().into_iter().filter(|what| what == note).count();
        assert_eq!(offs, 2, "at the window's beginning and at its end: {:?}", bmc.commands());
        scene.released_while_off(1);
    }
    Ok(())
}

/// So long after the acknowledgement it falls.
const LATE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_fall_that_takes_five_seconds_is_waited_for() -> Result<()> {
    let host = Host::on(by_script).await?;
    host.bmc.set(Knob::OffDelay(LATE))?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))]).start().await?;
    let fenced = scene.fence().await?;
    fenced.tell("ipmi_sim, falls after 5 s");
    assert!(fenced.took >= LATE, "{:?}", fenced.took);
    assert_eq!(fenced.is_fenced().long_window(), "", "it was seen to fall");
    fenced.dead_since(&host.observer).await;
    let fall = host.machine.power_events().pop().expect("it fell");
    assert!(fall.what == "off" && fall.at < fenced.confirmed_at(), "{fall:?}");
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn so_it_is_with_the_other_bmc() -> Result<()> {
    let bmc = Bmc17::start().await?;
    bmc.set(Knob::OffDelay(LATE))?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN))]).start().await?;
    let fenced = scene.fence().await?;
    fenced.tell("bmc17, falls after 5 s");
    fenced.is_fenced();
    assert!(fenced.took >= LATE, "{:?}", fenced.took);
    scene.released_while_off(1);
    assert_eq!(bmc.commands().iter().filter(|what| *what == "off").count(), 1, "{:?}", bmc.commands());
    Ok(())
}

#[tokio::test]
async fn an_off_that_fails_ends_with_a_person_and_an_on_that_fails_can_be_tried_again() -> Result<()> {
    let host = Host::on(by_script).await?;
    host.bmc.set(Knob::Fail)?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))])
        .with("[rules]\nlevel_share = \"9s\"\nfence_deadline = \"30s\"\nlongest_cycle = \"5s\"\non_deadline = \"3s\"")
        .start()
        .await?;
    let left = scene.fence().await?;
    left.tell("off fails");
    left.needs_operator(Reason::LevelsSpent);
    assert!(left.outcome().detail.contains("bmc on (the off: "), "{}", left.outcome().detail);
    host.is_alive().await?;
    scene.never_released().await;
    host.bmc.clear(Knob::Fail)?;
    scene.retry_until_fenced().await?.is_fenced().dead_since(&host.observer).await;
    scene.released_while_off(1);

    host.bmc.set(Knob::Fail)?;
    let failed = scene.unfence().await?;
    failed.tell("on fails");
    assert_eq!(failed.outcome().kind(), OutcomeKind::PowerOnFailed);
    assert_eq!(host.onlookers().await?, PowerWord::Off);
    host.bmc.clear(Knob::Fail)?;
    let back = scene.retry().await?;
    back.tell("on, tried again");
    back.is_back();
    host.is_alive().await?;
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_busy_bmc_that_loses_answers_is_asked_again() -> Result<()> {
    let bmc = Bmc17::start().await?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN))]).start().await?;
    bmc.set(Knob::Busy(3))?;
    bmc.set(Knob::DropAnswers(3))?;
    scene.fence().await?.is_fenced();
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn many_nodes_are_fenced_side_by_side() -> Result<()> {
    let farm = IpmiSim::farm(8).await?;
    let mut fleet = picket_tests::Fleet::new();
    let mut webhooks = Vec::new();
    for (index, bmc) in farm.iter().enumerate() {
        let webhook = picket_tests::Webhook::with_witness(bmc.truth()).await?;
        let release = format!("detach{index}");
        fleet = fleet.node(&format!("r1n{index}"), &Bmc::at(bmc.address()), &[&release]).webhook(
            &release,
            &webhook.url(),
            "settle = \"0s\"",
        );
        webhooks.push(webhook);
    }
    let gateway = picket_tests::Gateway::start(&fleet).await?;
    let fenced = gateway.picket(&["fence", "r1n[0-7]", "--yes", "--reason", "a test"]).await?;
    println!("{}", fenced.out);
    assert_eq!(fenced.code, 0, "{fenced:?}");
    for (bmc, webhook) in farm.iter().zip(&webhooks) {
        assert!(!bmc.is_on()?);
        assert_eq!(webhook.releases().iter().map(|hook| hook.on).collect::<Vec<_>>(), [Some(false)]);
    }
    Ok(())
}
