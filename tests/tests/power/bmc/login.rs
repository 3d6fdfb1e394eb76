//! Logins that are refused: said clearly, and not hammered.

use std::time::Duration;

use picket_proto::v1::{DeviceProblemKind, Readiness, Reason};
use picket_tests::peers::{ADMIN, Bmc17, IpmiSim, Knob, UdpFault, take_all_sessions};
use picket_tests::{Bmc, Result};
use tokio::time::Instant;

use crate::bmc::scene::Plan;

const WRONG: &str = "PICKET_TEST_WRONG_PASSWORD";
const WRONG_PASSWORD: &str = "not-the-password";

#[tokio::test]
async fn a_wrong_password_is_said_and_not_hammered() -> Result<()> {
    let (sim, bmc17) = (IpmiSim::start().await?, Bmc17::start().await?);
    for (name, truth, address) in
        [("ipmi_sim", sim.truth(), sim.address()), ("bmc17", bmc17.truth(), bmc17.address())]
    {
        let network = UdpFault::start(address, 1).await?;
        let bmc = Bmc::at(network.address()).user(ADMIN).password_in(WRONG);
        let began = Instant::now();
        let scene = Plan::over(truth, &[("bmc", bmc)]).variable(WRONG, WRONG_PASSWORD).start().await?;
        let node = scene.node().await?;
        assert_eq!(node.readiness(), Readiness::NotReady);
        let problem = &node.devices[0].problems[0];
        println!("{name}: {:?}: {}", problem.kind(), problem.text);
        assert_eq!(problem.kind(), DeviceProblemKind::Authentication);
        assert!(problem.text.contains("password"), "{}", problem.text);
        let told = scene.gateway.picket(&["status", "n1"]).await?;
        assert!(told.out.contains("password"), "{told:?}");

        let left = scene.fence().await?;
        left.tell(name);
        left.needs_operator(Reason::LevelsSpent);
        assert!(left.outcome().detail.contains("password"), "{}", left.outcome().detail);
        // Waits of 1, 2, 4, 8 ... seconds between them.
        let (logins, time) = (network.counts().logins, began.elapsed());
        println!("{name}: {logins} logins in {time:?}");
        assert!((1..=6).contains(&logins), "{logins} logins in {time:?}");
        scene.never_released().await;
        for said in [scene.gateway.log(), format!("{told:?}"), format!("{left:?}")] {
            assert!(!said.contains(WRONG_PASSWORD), "a secret is told");
        }
    }
    assert!(sim.is_on()? && bmc17.is_on()?);
    Ok(())
}

#[tokio::test]
async fn an_account_that_may_not_switch_is_forbidden() -> Result<()> {
    let bmc = Bmc17::start().await?;
    // A user may look and not switch (IPMI 2.0 appendix G).
    bmc.set(Knob::Privilege(2))?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN))])
        .with("[rules]\nsilent_share = \"5s\"\nfence_deadline = \"20s\"")
        .start()
        .await?;
    let node = scene.node().await?;
    let problem = &node.devices[0].problems[0];
    println!("{:?}: {}", problem.kind(), problem.text);
    assert_eq!((node.readiness(), problem.kind()), (Readiness::NotReady, DeviceProblemKind::Forbidden));
    assert!(problem.text.contains("operator"), "{}", problem.text);
    scene.fence().await?.needs_operator(Reason::LevelsSpent);
    scene.never_released().await;
    assert!(bmc.is_on()?);
    Ok(())
}

#[tokio::test]
async fn a_bmc_without_an_allowed_suite_is_not_talked_to_in_a_weaker_one() -> Result<()> {
    let bmc = Bmc17::with_suites("3").await?;
    let only17 = Bmc::at(bmc.address()).user(ADMIN);
    let scene = Plan::over(bmc.truth(), &[("bmc", only17)]).start().await?;
    // [17, 3] reaches it, [17] does not.
    assert_eq!(
        scene.node().await?.readiness(),
        Readiness::Degraded,
        "it answers, and its identity was only learned"
    );
    drop(scene);
    // Another one, to which nobody has talked.
    let bmc = Bmc17::with_suites("3").await?;
    let strict = picket_tests::Fleet::new().with(&format!(
        "[nodes.n1.devices.bmc]\ndriver = \"ipmi\"\nhost = \"{}\"\nport = {}\nusername = \"{ADMIN}\"\n\
         password_env = \"PICKET_TEST_BMC_PASSWORD\"",
        bmc.address().ip(),
        bmc.address().port()
    ));
    let gateway = picket_tests::Gateway::start(&strict).await?;
    gateway.checked().await?;
    let status = gateway.picket(&["status", "n1"]).await?;
    println!("{}", status.out);
    assert!(status.out.contains("none of the cipher suites"), "{status:?}");
    assert!(bmc.commands().is_empty(), "no session was opened");
    Ok(())
}

#[tokio::test]
async fn sessions_that_are_full_are_said_and_waited_for() -> Result<()> {
    let bmc = Bmc17::start().await?;
    bmc.set(Knob::NoSessions)?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN))]).start().await?;
    let node = scene.node().await?;
    let problem = &node.devices[0].problems[0];
    println!("{:?}: {}", problem.kind(), problem.text);
    assert_eq!((node.readiness(), problem.kind()), (Readiness::NotReady, DeviceProblemKind::Throttled));
    assert!(problem.text.contains("session slots"), "{}", problem.text);
    let (fenced, ()) = tokio::try_join!(scene.fence(), async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        bmc.clear(Knob::NoSessions)
    })?;
    fenced.tell("full, then free");
    fenced.is_fenced();
    assert!(fenced.took >= Duration::from_secs(6));
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn a_crowd_of_half_open_sessions_ends_by_itself() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let taken = take_all_sessions(bmc.address()).await?;
    let crowded = Instant::now();
    println!("{taken} sessions were taken");
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()))])
        .with("[rules]\nsilent_share = \"60s\"")
        .start()
        .await?;
    assert_eq!(scene.node().await?.devices[0].problems[0].kind(), DeviceProblemKind::Throttled);
    let fenced = scene.fence().await?;
    fenced.tell("a crowd");
    println!("fenced {:?} after the crowd came", crowded.elapsed());
    fenced.is_fenced();
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn full_for_good_ends_with_a_person() -> Result<()> {
    let bmc = Bmc17::start().await?;
    bmc.set(Knob::NoSessions)?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN))])
        .with("[rules]\nsilent_share = \"6s\"\nfence_deadline = \"20s\"")
        .start()
        .await?;
    let left = scene.fence().await?;
    left.tell("full for good");
    left.needs_operator(Reason::LevelsSpent);
    assert!(left.outcome().detail.contains("session slots"), "{}", left.outcome().detail);
    scene.never_released().await;
    assert!(bmc.is_on()?);
    Ok(())
}
