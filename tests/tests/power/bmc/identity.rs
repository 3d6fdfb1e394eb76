//! The right machine: a device that says it controls another one gets nothing (S13).

use std::os::unix::fs::PermissionsExt;

use picket_proto::v1::{DeviceProblemKind, FenceRequest, Grade, IdentityMatch, Readiness, Reason};
use picket_tests::peers::{ADMIN, Bmc17, IpmiSim, Ipmitool};
use picket_tests::{Bmc, Result};
use tempfile::TempDir;

use crate::bmc::host::{Host, with_holds};
use crate::bmc::scene::Plan;

const ANOTHER: &str = "identity = { uuid = \"8d3f2f1e-64a1-4c2e-9d43-0f5a0a2b6c41\" }";

#[tokio::test]
async fn a_bmc_of_another_machine_gets_neither_hold_nor_off() -> Result<()> {
    let host = Host::on(with_holds).await?;
    host.bmc.preset("policy", 2)?;
    let bmc = Bmc::at(host.bmc.address()).with(ANOTHER);
    let scene = Plan::over(host.machine.truth(), &[("bmc", bmc)]).start().await?;
    let node = scene.node().await?;
    assert_eq!(node.readiness(), Readiness::NotReady);
    let kinds: Vec<DeviceProblemKind> =
        node.devices[0].problems.iter().map(|problem| problem.kind()).collect();
    assert!(kinds.contains(&DeviceProblemKind::IdentityMismatch), "{kinds:?}");

    let left = scene.fence().await?;
    left.tell("another machine's BMC");
    left.needs_operator(Reason::IdentityMismatch);
    let detail = &left.outcome().detail;
    assert!(detail.contains(&host.bmc.guid()) && detail.contains("8d3f2f1e64a1"), "both are named: {detail}");
    assert!(!detail.contains("Some("), "in words: {detail}");
    assert_eq!(host.bmc.hold_log(), Vec::<String>::new(), "no hold was sent");
    assert_eq!(host.power_events(), ["on"], "no off was sent");
    host.is_alive().await?;
    scene.never_released().await;

    // A person's retry changes nothing about it.
    scene.retry().await?.needs_operator(Reason::IdentityMismatch);
    assert_eq!((host.bmc.hold_log(), host.power_events()), (vec![], vec!["on".to_owned()]));
    host.is_alive().await?;
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn so_it_is_where_nothing_was_checked_before() -> Result<()> {
    let bmc = Bmc17::start().await?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()).user(ADMIN).with(ANOTHER))])
        .unchecked()
        .start()
        .await?;
    scene.fence().await?.needs_operator(Reason::IdentityMismatch);
    assert!(bmc.is_on()?);
    let switched: Vec<String> =
        bmc.commands().into_iter().filter(|what| what.starts_with("off") || what == "on").collect();
    assert_eq!(switched, Vec::<String>::new());
    scene.never_released().await;
    Ok(())
}

#[tokio::test]
async fn the_right_one_is_known_by_its_settings_in_either_byte_order() -> Result<()> {
    let guid = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;
    for uuid in ["00112233-4455-6677-8899-aabbccddeeff", "33221100-5544-7766-8899-aabbccddeeff"] {
        let bmc = IpmiSim::builder().guid(guid).start().await?;
        let known = Bmc::at(bmc.address()).with(&format!("identity = {{ uuid = \"{uuid}\" }}"));
        let scene = Plan::over(bmc.truth(), &[("bmc", known)]).unchecked().start().await?;
        let fenced = scene.fence().await?;
        assert_eq!(fenced.is_fenced().evidence().grade(), Grade::Observed, "{uuid}");
        scene.released_while_off(1);
    }
    Ok(())
}

#[tokio::test]
async fn an_identity_that_is_not_known_lowers_the_grade_and_is_not_learned_in_a_fence() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()))]).unchecked().start().await?;
    for _ in 0..2 {
        let fenced = scene.fence().await?;
        let evidence = fenced.is_fenced().evidence();
        println!("{:?}", evidence.lowered_by);
        assert_eq!(evidence.grade(), Grade::Claimed);
        assert!(evidence.lowered_by[0].contains("identity"), "{:?}", evidence.lowered_by);
        scene.unfence().await?.is_back();
    }
    scene.released_while_off(2);
    Ok(())
}

/// Two nodes whose settings name each other's BMC: what a hand that swapped two cables leaves behind.
#[tokio::test]
async fn swapped_bmcs_are_noticed_because_identities_were_learned_before() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let mut scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()))]).start().await?;
    assert_eq!(scene.node().await?.readiness(), Readiness::Degraded, "its identity was only learned");
    let (address, truth) = (bmc.address(), bmc.truth());
    scene.gateway.stop().await?;
    drop(bmc);
    let other = IpmiSim::builder().address(address).start().await?;
    scene.gateway.begin(&[]).await?;
    scene.gateway.checked().await?;
    assert_eq!(scene.node().await?.readiness(), Readiness::NotReady);
    scene.fence().await?.needs_operator(Reason::IdentityMismatch);
    assert!(other.is_on()? && truth());
    assert_eq!(Ipmitool::new(address).power().await?, picket_tests::peers::PowerWord::On);
    scene.never_released().await;
    Ok(())
}

/// Drills of `n1`, and a program that says whether the machine behind that BMC is alive.
fn watched(home: &TempDir, machine: &IpmiSim) -> String {
    let program = home.path().join("alive");
    let power = machine.directory().join("power");
    let script = format!("#!/bin/sh\n[ \"$(cat {})\" = 1 ] && exit 0\nexit 1\n", power.display());
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("executable");
    format!(
        "[groups.all]\nhosts = \"n1\"\ndrills = true\n[groups.all.liveness]\nkind = \"command\"\nprogram = {program:?}"
    )
}

const DRILL: [&str; 5] = ["drill", "n1", "--yes", "--reason", "a test"];

/// Each node's settings name the BMC of the other one, and each BMC says of itself what was learned from it.
#[tokio::test]
async fn of_bmcs_swapped_from_the_start_the_evidence_says_learned_and_a_drill_finds_them_out() -> Result<()> {
    let (ours, theirs) = (IpmiSim::start().await?, IpmiSim::start().await?);
    let home = tempfile::tempdir().expect("a directory");
    let other = Bmc::at(ours.address()).device("n2", "bmc");
    let scene = Plan::over(ours.truth(), &[("bmc", Bmc::at(theirs.address()))])
        .with(&format!("[nodes.n2]\nlevels = [[\"bmc\"]]\nreleases = []\n{other}"))
        .with(&watched(&home, &ours))
        .start()
        .await?;
    let checked = scene.gateway.picket(&["check", "n1"]).await?;
    assert!(checked.out.contains("graded learned; give `identity = "), "{checked:?}");
    let kinds: Vec<DeviceProblemKind> =
        scene.node().await?.devices[0].problems.iter().map(|problem| problem.kind()).collect();
    assert_eq!(kinds, [DeviceProblemKind::IdentityLearned]);

    // Who wants no more is told what it is worth.
    let fenced = scene.fence().await?;
    fenced.tell("swapped BMCs");
    let evidence = fenced.is_fenced().evidence();
    assert_eq!(evidence.grade(), Grade::Learned);
    assert_eq!(evidence.devices[0].identity_match(), IdentityMatch::Learned);
    assert_eq!(evidence.lowered_by, ["bmc: its identity was learned from the device itself"]);
    assert!(ours.is_on()?);
    scene.unfence().await?.is_back();

    let drilled = scene.gateway.picket(&DRILL).await?;
    assert!(drilled.out.contains("it may control another machine"), "{drilled:?}");
    let checked = scene.gateway.picket(&["check", "n1"]).await?;
    assert!(checked.out.contains("graded learned"), "{checked:?}");

    // Who wants more lets nothing go.
    let released = scene.webhook.releases().len();
    let wanting = FenceRequest { minimum_grade: Grade::Observed.into(), ..FenceRequest::default() };
    let left = scene.fence_as(wanting).await?;
    left.tell("swapped BMCs, and observed wanted");
    left.needs_operator(Reason::GradeTooLow);
    assert!(ours.is_on()? && !theirs.is_on()?, "the neighbour was killed");
    assert_eq!(scene.webhook.releases().len(), released);
    Ok(())
}

#[tokio::test]
async fn a_drill_that_a_program_saw_makes_a_learned_identity_known_also_after_a_restart() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let home = tempfile::tempdir().expect("a directory");
    let mut scene = Plan::over(bmc.truth(), &[("bmc", Bmc::at(bmc.address()))])
        .with(&watched(&home, &bmc))
        .start()
        .await?;
    let drilled = scene.gateway.picket(&DRILL).await?;
    assert!(drilled.out.contains("its identity is verified"), "{drilled:?}");
    assert_eq!(scene.node().await?.readiness(), Readiness::Ready);
    scene.gateway.stop().await?;
    scene.gateway.begin(&[]).await?;
    scene.gateway.checked().await?;
    let wanting = FenceRequest { minimum_grade: Grade::Observed.into(), ..FenceRequest::default() };
    let fenced = scene.fence_as(wanting).await?;
    let evidence = fenced.is_fenced().evidence();
    assert_eq!(
        (evidence.grade(), evidence.devices[0].identity_match()),
        (Grade::Observed, IdentityMatch::Match)
    );
    Ok(())
}
