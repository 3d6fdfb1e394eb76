//! S13 where nothing but a device itself has said whose machine it controls: what its Off is graded, and who else may say so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use picket_core::device::{DeviceSpec, Grade, Identity, IdentityMatch};
use picket_core::event::Holder;
use picket_core::ids::{DeviceId, NodeId};
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{Evidence, IdentityProof, Then};
use picket_core::time::Clock;
use picket_driver_sim::{Fault, RestorePolicy, World};
use picket_engine::{Admission, FenceCall, Readiness, Trouble, Until};
use picket_liveness::{Liveness, Look};

use crate::lab::{Lab, NODE, node, person, s};
use crate::liveness::as_seen;
use crate::setup::{NodeSetup, Setup, named};

const FENCED: Outcome = Outcome::Fenced { released: true };
const OTHER: &str = "n2";

fn device(name: &str) -> DeviceId {
    DeviceId::new(name).expect("a good name")
}

/// `n1` with these levels; the settings say of `bmc` and `bmc2` no identity.
fn setup(levels: &[&[&str]]) -> Setup {
    let mut setup = Setup::new(NODE, levels);
    setup.check_at_start = true;
    setup.adjust = Arc::new(|spec: &mut DeviceSpec| {
        if spec.id.as_str().starts_with("bmc") {
            spec.identity = Identity::default();
        }
    });
    setup
}

/// Two nodes whose BMCs have each other's address from the start.
async fn swapped(seed: u64) -> Lab {
    swapped_by(seed, |setup| setup.without_releases = true).await
}

async fn swapped_by(seed: u64, adjust: impl FnOnce(&mut Setup)) -> Lab {
    let mut setup = setup(&[&["bmc"]]);
    adjust(&mut setup);
    setup.nodes.push(NodeSetup { name: OTHER.to_owned(), levels: named(&[&["bmc2"]]), own_host: false });
    learned(seed, setup, |world| {
        world.add_machine(NODE).add_machine(OTHER).add_host(OTHER, "bmc").add_host(NODE, "bmc2");
    })
    .await
}

/// `n1` and its own BMC.
async fn right(seed: u64) -> Lab {
    learned(seed, setup(&[&["bmc"]]), |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await
}

async fn learned(seed: u64, setup: Setup, build: impl FnOnce(&mut World)) -> Lab {
    let lab = Lab::set_up(seed, setup, build).await;
    lab.engine.check(&node()).await.expect("checked");
    assert!(lab.record().learned.contains_key(&device("bmc")), "nothing was learned");
    lab
}

/// From now on there is a liveness source, which says what it sees of the machine of `n1`; `None`: it is silent.
async fn watched(lab: &mut Lab, says: impl Fn(bool) -> Option<Look> + Send + Sync + 'static) {
    lab.kill().await;
    let (world, clock) = (lab.world.clone(), lab.clock.clone());
    lab.setup.liveness = Some(as_seen(move || says(world.lock().truth(NODE, clock.boot()))));
    lab.setup.lives = Some(NODE.to_owned());
    lab.start().await;
    lab.engine.check(&node()).await.expect("checked");
}

fn explicit(alive: bool) -> Option<Look> {
    Some(match alive {
        true => Look::Recovered("ready".to_owned()),
        false => Look::NotRecovered("not ready".to_owned()),
    })
}

/// What a drill found, in words.
async fn drilled(lab: &mut Lab) -> String {
    let call = lab.call();
    let call = FenceCall { holder: Holder { then: Then::PowerOn, ..call.holder.clone() }, ..call };
    let Ok(Admission::Opened(id)) = lab.engine.drill(&node(), call).await else { panic!("not let in") };
    lab.reach("normal", s(900)).await;
    let fence = lab.engine.get_fence(id).await.expect("a store").expect("kept");
    let findings: Vec<&str> = fence.findings().collect();
    findings.join("\n")
}

fn proof(lab: &Lab, name: &str) -> Option<IdentityProof> {
    lab.record().identity_proofs.get(&device(name)).cloned()
}

/// A fence whose caller wants no less than that.
async fn fenced_with(lab: &mut Lab, least: Option<Grade>) -> Outcome {
    let call = FenceCall { min_grade: least, ..lab.call() };
    let id = lab.engine.fence(&node(), call).await.expect("let in").fence();
    lab.outcome(id, Until::Released).await
}

fn evidence(lab: &Lab) -> Evidence {
    lab.record().fence.and_then(|fence| fence.evidence).expect("evidence")
}

#[tokio::test(start_paused = true)]
async fn of_two_bmcs_swapped_from_the_start_the_evidence_says_that_their_identities_were_learned() {
    let mut lab = swapped(2900).await;
    assert_eq!(fenced_with(&mut lab, None).await, FENCED, "the default minimum is claimed");
    let now = lab.clock.boot();
    let (ours, other) = {
        let mut world = lab.world.lock();
        (world.truth(NODE, now), world.truth(OTHER, now))
    };
    assert!(ours && !other, "the neighbour was killed");
    let evidence = evidence(&lab);
    assert_eq!((evidence.grade, evidence.devices[0].identity), (Grade::Learned, IdentityMatch::Learned));
    assert_eq!(evidence.lowered_by, ["bmc: its identity was learned from the device itself"]);
}

#[tokio::test(start_paused = true)]
async fn who_wants_a_machine_that_is_known_lets_nothing_go_by_swapped_bmcs() {
    for least in [Grade::Observed, Grade::Hypervisor] {
        let mut lab = swapped_by(2901, |_| {}).await;
        let outcome = fenced_with(&mut lab, Some(least)).await;
        assert_eq!(outcome, Outcome::NeedsOperator(Reason::GradeTooLow), "{least:?}");
        assert_eq!(lab.attempts(), 0, "{least:?}: it was let go of");
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_tells_that_an_identity_was_only_learned_and_what_would_verify_it() {
    let lab = right(2902).await;
    let view = lab.view();
    let live = &view.live.devices[&device("bmc")];
    assert_eq!(live.identity_match, Some(IdentityMatch::Learned));
    let spec = view.plan.topology.device(&device("bmc")).expect("a device");
    let problems = picket_engine::problems(spec, live);
    let [only] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!(only.trouble, Trouble::LearnedMachine);
    assert_eq!(
        only.text,
        "its identity was learned from the device itself: graded learned; give `identity = …` in its settings, or run a drill with a \
         liveness source"
    );
    assert_eq!(picket_engine::readiness(spec, live, &view.stored.record.phase), Readiness::Degraded);
}

#[tokio::test(start_paused = true)]
async fn a_drill_by_the_bmc_alone_verifies_nothing_and_says_what_would() {
    for (what, mut lab) in [("right", right(2903).await), ("swapped", swapped(2903).await)] {
        let findings = drilled(&mut lab).await;
        assert_eq!(proof(&lab, "bmc"), None, "{what}");
        assert!(findings.contains("no other witness saw the node fall"), "{what}: {findings}");
        assert!(findings.contains("a liveness source") && findings.contains("`identity`"), "{findings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drill_that_a_liveness_source_saw_verifies_it_also_for_the_next_gateway() {
    let mut lab = right(2904).await;
    watched(&mut lab, explicit).await;
    let findings = drilled(&mut lab).await;
    assert!(findings.contains("its identity is verified"), "{findings}");
    assert!(proof(&lab, "bmc").is_some_and(|proof| proof.by.contains("its liveness source (not ready)")));
    let told = lab.view().live.devices[&device("bmc")].identity_match;
    assert_eq!(told, Some(IdentityMatch::Match), "what is told of it changes at once");
    lab.kill().await;
    lab.setup.liveness = None;
    lab.start().await;
    assert_eq!(fenced_with(&mut lab, Some(Grade::Observed)).await, FENCED);
    let evidence = evidence(&lab);
    assert_eq!((evidence.grade, evidence.devices[0].identity), (Grade::Observed, IdentityMatch::Match));
}

/// Looks for nearly as long as it may, and says what it sees at the end of that.
#[derive(Debug)]
struct Slow(Arc<dyn Liveness>);

#[async_trait::async_trait]
impl Liveness for Slow {
    fn patience(&self) -> Duration {
        self.0.patience()
    }

    async fn look(&self) -> Look {
        tokio::time::sleep(self.patience() - Duration::from_millis(100)).await;
        self.0.look().await
    }
}

/// It would see the node alive again, and speak against the BMC that had just proven right.
#[tokio::test(start_paused = true)]
async fn the_look_of_a_slow_liveness_source_ends_before_the_node_is_switched_on() {
    let mut lab = right(2913).await;
    watched(&mut lab, explicit).await;
    lab.kill().await;
    lab.setup.liveness = lab.setup.liveness.take().map(|source| Arc::new(Slow(source)) as Arc<dyn Liveness>);
    lab.start().await;
    lab.engine.check(&node()).await.expect("checked");
    let findings = drilled(&mut lab).await;
    assert!(findings.contains("its identity is verified"), "{findings}");
}

#[tokio::test(start_paused = true)]
async fn a_drill_of_swapped_bmcs_is_found_out_by_a_liveness_source_that_still_sees_the_node() {
    let mut lab = swapped(2905).await;
    watched(&mut lab, explicit).await;
    let findings = drilled(&mut lab).await;
    assert!(findings.contains("it may control another machine"), "{findings}");
    assert_eq!(proof(&lab, "bmc"), None);
    let outcome = fenced_with(&mut lab, Some(Grade::Observed)).await;
    assert_ne!(outcome, FENCED, "the node runs");
}

/// S1: silence is no word.
#[tokio::test(start_paused = true)]
async fn a_liveness_source_that_falls_silent_with_the_node_saw_nothing() {
    let says: [fn(bool) -> Option<Look>; 3] = [
        |alive| explicit(alive).filter(|_| alive),
        |alive| explicit(alive).map(|look| if alive { look } else { Look::Unanswered("500".to_owned()) }),
        |alive| explicit(alive).map(|look| if alive { look } else { Look::Away("nobody there".to_owned()) }),
    ];
    for says in says {
        let mut lab = right(2906).await;
        watched(&mut lab, says).await;
        let findings = drilled(&mut lab).await;
        assert!(findings.contains("no explicit word"), "{findings}");
        assert_eq!(proof(&lab, "bmc"), None);
    }
}

/// What runs on the node may miss the machine that was killed in its place, and say so soon after.
#[tokio::test(start_paused = true)]
async fn a_source_that_said_alive_while_the_bmc_read_off_is_no_witness_a_moment_later() {
    let mut lab = right(2915).await;
    let looks = AtomicUsize::new(0);
    watched(&mut lab, move |alive| {
        let is_first = !alive && looks.fetch_add(1, Ordering::SeqCst) == 0;
        explicit(alive || is_first)
    })
    .await;
    lab.world.lock().fault("bmc", Fault::OnTakes { least: s(20), most: s(20) });
    let findings = drilled(&mut lab).await;
    assert!(findings.contains("slow to notice"), "{findings}");
    assert_eq!(proof(&lab, "bmc"), None);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_did_not_say_before_that_the_node_is_alive_saw_no_fall() {
    let mut lab = right(2907).await;
    watched(&mut lab, |_| explicit(false)).await;
    let findings = drilled(&mut lab).await;
    assert!(findings.contains("did not say that the node was alive before"), "{findings}");
    assert_eq!(proof(&lab, "bmc"), None);
}

/// A BMC, and one whose identity the settings give.
async fn two_devices(seed: u64, levels: &[&[&str]]) -> Lab {
    learned(seed, setup(levels), |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "agent");
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_second_device_of_a_known_machine_that_was_left_alone_is_a_witness() {
    let mut lab = two_devices(2908, &[&["bmc"], &["agent"]]).await;
    let findings = drilled(&mut lab).await;
    assert!(proof(&lab, "bmc").is_some_and(|proof| proof.by.contains("agent")), "{findings}");
}

/// Each fell by its own off: that the node fell says nothing of what the other one controls.
#[tokio::test(start_paused = true)]
async fn a_device_that_was_switched_off_too_is_no_witness() {
    let mut lab = two_devices(2909, &[&["bmc", "agent"]]).await;
    watched(&mut lab, explicit).await;
    let findings = drilled(&mut lab).await;
    assert!(findings.contains("other devices were switched off with it"), "{findings}");
    assert_eq!(proof(&lab, "bmc"), None);
}

#[tokio::test(start_paused = true)]
async fn a_second_device_whose_identity_was_learned_too_is_no_witness() {
    let mut setup = setup(&[&["bmc"], &["bmc2"]]);
    setup.without_releases = true;
    let mut lab = learned(2910, setup, |world| {
        world.add_machine(NODE).add_machine(OTHER).add_host(OTHER, "bmc").add_host(OTHER, "bmc2");
    })
    .await;
    let findings = drilled(&mut lab).await;
    assert!(findings.contains("no other witness"), "{findings}");
    assert!(lab.record().identity_proofs.is_empty());
}

/// S3: of outlets that were drilled against such a BMC it is known that they feed the machine which that one controls, and not whose it is. A
/// liveness source may be cut off by them, and is no witness of their wiring.
#[tokio::test(start_paused = true)]
async fn a_drill_is_by_the_outlets_once_a_witness_said_whose_machine_the_bmc_controls() {
    for is_watched in [false, true] {
        let mut setup = setup(&[&["bmc"], &["a"]]);
        let before = setup.adjust.clone();
        setup.adjust = Arc::new(move |spec| {
            before(spec);
            spec.verified = false;
        });
        setup.without_releases = true;
        let mut lab = learned(2911, setup, |world| {
            world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "a");
            world.set_restore(NODE, RestorePolicy::AlwaysOff);
        })
        .await;
        if is_watched {
            watched(&mut lab, explicit).await;
            let first = drilled(&mut lab).await;
            assert!(first.contains("off by bmc") && proof(&lab, "bmc").is_some(), "{first}");
        }
        let found = drilled(&mut lab).await;
        assert!(found.contains("off by a"), "{found}");
        assert_eq!(lab.record().wired.len(), usize::from(is_watched), "{found}");
        assert_eq!(found.contains("nobody but bmc says whose machine fell"), !is_watched, "{found}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drill_in_which_the_gateway_died_verifies_no_identity() {
    let mut lab = right(2912).await;
    watched(&mut lab, explicit).await;
    let call = lab.call();
    let call = FenceCall { holder: Holder { then: Then::PowerOn, ..call.holder.clone() }, ..call };
    lab.engine.drill(&node(), call).await.expect("let in");
    tokio::time::sleep(s(1)).await;
    lab.crash().await;
    lab.reach("normal", s(1_200)).await;
    assert_eq!(proof(&lab, "bmc"), None);
}

#[tokio::test(start_paused = true)]
async fn an_identity_that_a_person_accepts_is_learned_from_the_device_again() {
    let mut lab = right(2913).await;
    watched(&mut lab, explicit).await;
    drilled(&mut lab).await;
    assert!(proof(&lab, "bmc").is_some());
    let said = lab.world.lock().identity(NODE).clone();
    lab.engine.accept_identity(&node(), device("bmc"), said, person()).await.expect("accepted");
    assert_eq!(proof(&lab, "bmc"), None);
    let told = lab.view().live.devices[&device("bmc")].identity_match;
    assert_eq!(told, Some(IdentityMatch::Learned));
    lab.kill().await;
    lab.setup.liveness = None;
    lab.start().await;
    assert_eq!(fenced_with(&mut lab, Some(Grade::Learned)).await, FENCED);
    assert_eq!(evidence(&lab).grade, Grade::Learned);
}

#[tokio::test(start_paused = true)]
async fn a_plan_says_that_the_grade_would_be_learned() {
    let mut lab = right(2914).await;
    let call = FenceCall { min_grade: Some(Grade::Observed), ..lab.call() };
    let plan = lab.engine.plan(&NodeId::new(NODE).expect("a good name"), call).await.expect("planned");
    let confirm = plan.steps.iter().find(|step| step.grade.is_some()).expect("a proof");
    assert_eq!(confirm.grade, Some(Grade::Learned));
    assert!(
        confirm.obstacles.iter().any(|why| why.contains("learned from the device itself")),
        "{confirm:?}"
    );
}
