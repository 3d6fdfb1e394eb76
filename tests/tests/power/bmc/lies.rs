//! BMCs that ignore an off, or lie about it.

use std::time::Duration;

use picket_proto::v1::{Phase, Reason};
use picket_tests::peers::{ADMIN, Bmc17, IpmiSim, Ipmitool, Knob, PowerWord};
use picket_tests::{Bmc, Result};

use crate::bmc::host::{Host, by_script};
use crate::bmc::scene::{LISTEN, Plan};

/// A level is given up after 9 s rather than 180 s; the long window has to fit into that.
const SHORT_SHARE: &str =
    "[rules]\nlevel_share = \"9s\"\nfence_deadline = \"30s\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"";

#[tokio::test]
async fn an_off_that_is_ignored_ends_with_a_person() -> Result<()> {
    let host = Host::on(by_script).await?;
    host.bmc.set(Knob::IgnoreOff)?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))])
        .with(SHORT_SHARE)
        .start()
        .await?;
    let left = scene.fence().await?;
    left.tell("off ignored");
    left.needs_operator(Reason::LevelsSpent);
    assert!(left.outcome().detail.contains("bmc on"), "{}", left.outcome().detail);
    assert_eq!(host.onlookers().await?, PowerWord::On);
    host.is_alive().await?;
    scene.never_released().await;

    // It is kept off as well as can be, which proves nothing; a person's retry does.
    host.bmc.clear(Knob::IgnoreOff)?;
    scene.until("the off goes on", Duration::from_secs(30), |_| !host.machine.lives()).await?;
    scene.never_released().await;
    assert_eq!(scene.node().await?.phase(), Phase::NeedsOperator);
    let retried = scene.retry_until_fenced().await?;
    retried.tell("retried");
    retried.is_fenced().dead_since(&host.observer).await;
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_bmc_that_says_on_for_ever_confirms_nothing() -> Result<()> {
    let host = Host::on(by_script).await?;
    host.bmc.set(Knob::StuckPower(true))?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))])
        .with(SHORT_SHARE)
        .start()
        .await?;
    let left = scene.fence().await?;
    left.tell("says On for ever");
    left.needs_operator(Reason::LevelsSpent);
    assert!(!host.machine.lives(), "it was switched off all the same");
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn an_ignored_off_is_sent_again() -> Result<()> {
    let bmc = Bmc17::start().await?;
    bmc.set(Knob::IgnoreOff)?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN))]).start().await?;
    let ignored = || bmc.commands().iter().any(|what| what == "off ignored");
    let (fenced, ()) = tokio::try_join!(scene.fence(), async {
        picket_tests::peers::eventually("an off is ignored", Duration::from_secs(30), ignored).await?;
        bmc.clear(Knob::IgnoreOff)
    })?;
    fenced.tell("ignored once, then obeyed");
    fenced.is_fenced();
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn where_the_first_level_ignores_it_the_next_one_does_it() -> Result<()> {
    let host = Host::on(by_script).await?;
    host.bmc.set(Knob::IgnoreOff)?;
    let second = host.second_bmc().await?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))])
        .level(&[("second", Bmc::at(second.address()))])
        .with(SHORT_SHARE)
        .start()
        .await?;
    let fenced = scene.fence_until_fenced().await?;
    fenced.tell("next level");
    assert_eq!(fenced.is_fenced().evidence().level, 2);
    fenced.dead_since(&host.observer).await;
    scene.released_while_off(1);
    Ok(())
}

/// Host devices may contradict each other for so long.
const CONTRADICTION: Duration = Duration::from_secs(30);

/// A machine with two BMCs: the first acknowledges the off and lies, the second sees that it is on.
async fn liar_and_witness() -> Result<(Host, IpmiSim)> {
    let host = Host::on(by_script).await?;
    let second = host.second_bmc().await?;
    host.bmc.set(Knob::LieOff)?;
    second.set(Knob::IgnoreOff)?;
    Ok((host, second))
}

#[tokio::test]
async fn a_lie_about_the_off_is_a_contradiction_where_the_level_has_a_second_device() -> Result<()> {
    let (host, second) = liar_and_witness().await?;
    let devices = [("liar", Bmc::at(host.bmc.address())), ("second", Bmc::at(second.address()))];
    let scene = Plan::over(host.machine.truth(), &devices).start().await?;
    let left = scene.fence().await?;
    left.tell("a liar and a witness in one level");
    left.needs_operator(Reason::Contradiction);
    assert!(left.took >= CONTRADICTION, "{:?}", left.took);
    assert!(left.outcome().detail.contains("second says On"), "{}", left.outcome().detail);
    assert_eq!(Ipmitool::new(host.bmc.address()).power().await?, PowerWord::Off, "it lies to everybody");
    assert_eq!(Ipmitool::new(second.address()).power().await?, PowerWord::On);
    host.is_alive().await?;
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn so_it_is_where_the_second_device_stands_in_another_level() -> Result<()> {
    let (host, second) = liar_and_witness().await?;
    let scene = Plan::over(host.machine.truth(), &[("liar", Bmc::at(host.bmc.address()))])
        .level(&[("second", Bmc::at(second.address()))])
        .start()
        .await?;
    let left = scene.fence().await?;
    left.tell("a liar, and a witness in the next level");
    left.needs_operator(Reason::Contradiction);
    host.is_alive().await?;
    scene.never_released().await;
    Ok(())
}

/// What remains, and is said in the README: a single device that lies is believed. It shows as well that the observers of
/// these tests would see a wrong release.
#[tokio::test]
async fn a_single_liar_is_believed_and_the_observers_see_that_it_lied() -> Result<()> {
    let host = Host::on(by_script).await?;
    host.bmc.set(Knob::LieOff)?;
    let scene = Plan::over(host.machine.truth(), &[("bmc", Bmc::at(host.bmc.address()))]).start().await?;
    let fenced = scene.fence().await?;
    fenced.is_fenced();
    assert_eq!(scene.webhook.releases().iter().map(|hook| hook.on).collect::<Vec<_>>(), [Some(true)]);
    assert!(!host.observer.listen(LISTEN).await.is_empty());
    assert!(!host.observer.after(fenced.confirmed_at()).is_empty());
    Ok(())
}
