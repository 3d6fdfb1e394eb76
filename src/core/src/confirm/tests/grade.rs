//! How good evidence is, what lowers it, and the least that is asked for; S13 as far as the judge goes.

use crate::confirm::Verdict;
use crate::device::{DeviceClass, DeviceSpec, Grade, Identity, IdentityMatch};
use crate::event::{Event, FenceRequest};
use crate::ids::Term;
use crate::power::Power::{Off, On};
use crate::record::ReleaseStage;
use crate::support::{Bench, Player, device, host, request, s, supply};

#[test]
fn an_identity_that_is_not_known_lowers_it() {
    let mut bench = Bench::of_unknown(&[&[host("bmc")]]);
    bench.falls("bmc");
    let proof = bench.confirmed();
    assert_eq!(proof.evidence().grade, Grade::Claimed);
    assert_eq!(proof.evidence().lowered_by, ["bmc: its identity is not known"]);
    assert_eq!(proof.evidence().devices[0].identity, IdentityMatch::Unknown);
}

/// S13: two BMCs whose addresses were swapped from the start say of themselves what was learned from them.
#[test]
fn an_identity_that_only_the_device_itself_has_said_is_graded_learned() {
    for (least, enough) in [(Grade::Observed, false), (Grade::Hypervisor, false), (Grade::Learned, true)] {
        let mut player = learned();
        player.fence(FenceRequest { min_grade: least, ..request(1, &[&[without_identity()]], &[]) });
        let mut bench = Bench::judging(player.record(), Term(1), false);
        bench.falls("bmc");
        match bench.verdict() {
            Verdict::Confirmed(proof) => {
                assert!(enough, "{least:?}");
                let evidence = proof.evidence();
                assert_eq!(
                    (evidence.grade, evidence.devices[0].identity),
                    (Grade::Learned, IdentityMatch::Learned)
                );
                assert_eq!(evidence.lowered_by, ["bmc: its identity was learned from the device itself"]);
            }
            Verdict::GradeTooLow { grade: Grade::Learned, may_rise: false, .. } => {
                assert!(!enough, "{least:?}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_identity_that_another_has_said_too_is_graded_as_one_of_the_settings() {
    let mut player = learned();
    let by = "Kubernetes".to_owned();
    player.apply(Event::IdentityProven { device: device("bmc"), identity: host("bmc").identity, by });
    player.fence(request(1, &[&[without_identity()]], &[]));
    let mut bench = Bench::judging(player.record(), Term(1), false);
    bench.falls("bmc");
    let proof = bench.confirmed();
    let evidence = proof.evidence();
    assert_eq!((evidence.grade, evidence.devices[0].identity), (Grade::Observed, IdentityMatch::Match));
    assert_eq!(evidence.lowered_by, [""; 0]);
}

/// A BMC that says of itself what was learned from it.
fn learned() -> Player {
    let mut player = Player::new();
    player.apply(Event::Learned { device: device("bmc"), identity: host("bmc").identity });
    player
}

/// The same, of which the settings say nothing.
fn without_identity() -> DeviceSpec {
    DeviceSpec { identity: Identity::default(), ..host("bmc") }
}

#[test]
fn the_wrong_machine_is_neither_switched_off_nor_a_proof() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.says_whose("bmc", IdentityMatch::Mismatch, bench.now);
    bench.reads("bmc", On);
    assert!(!bench.wants_off("bmc"));
    bench.off("bmc").reads_off("bmc", 60);
    assert!(bench.is_open());
}

/// Where the child runs was asked before a device of this class says Off (S22): see [`crate::parent`].
#[test]
fn off_by_the_parent_is_graded_so_and_a_host_device_that_says_on_speaks_against_it() {
    let parent = DeviceSpec { class: DeviceClass::Parent, grade: Grade::Hypervisor, ..host("hypervisor") };
    let mut bench = Bench::of(&[&[parent], &[host("server")]]);
    bench.falls("hypervisor");
    bench.reads("server", On);
    bench.reads_off("hypervisor", 20);
    assert!(bench.is_open(), "it runs elsewhere");
    let mut bench = Bench::of(&[&[DeviceSpec {
        class: DeviceClass::Parent,
        grade: Grade::Hypervisor,
        ..host("hypervisor")
    }]]);
    bench.falls("hypervisor");
    assert_eq!(bench.confirmed().evidence().grade, Grade::Hypervisor);
}

#[test]
fn a_supply_without_a_drill_lowers_it() {
    let bench = Bench::of(&[&[DeviceSpec { verified: false, ..supply("pdu") }]]);
    let proof = bench.proves();
    assert_eq!(proof.evidence().grade, Grade::Claimed, "not verified, and no epochs");
    assert_eq!(
        proof.evidence().lowered_by,
        ["pdu: its wiring was not verified", "pdu: it does not tell its restarts"]
    );
}

/// What is let go is said to be the machine's by a name alone (K1).
#[test]
fn a_release_that_goes_by_the_name_lowers_it_once() {
    for (least, enough) in [(Grade::Observed, false), (Grade::Hypervisor, true)] {
        let mut player = Player::new();
        let mut request =
            FenceRequest { min_grade: least, ..request(1, &[&[host("bmc")]], &["pods", "more"]) };
        request.releases.iter_mut().for_each(|release| release.by_name = true);
        player.fence(request);
        let mut bench = Bench::judging(player.record(), Term(1), false);
        bench.falls("bmc");
        match bench.verdict() {
            Verdict::Confirmed(proof) => {
                assert!(enough);
                let evidence = proof.evidence();
                assert_eq!(evidence.grade, Grade::Hypervisor);
                assert_eq!(evidence.lowered_by, ["release pods may know the node by its name alone"]);
            }
            Verdict::GradeTooLow { grade: Grade::Hypervisor, lowered_by: why, may_rise: false } => {
                assert!(!enough && why == ["release pods may know the node by its name alone"], "{why:?}");
            }
            other => panic!("{other:?}"),
        }
        // What was given up lets go of nobody.
        let mut record = player.record().clone();
        let releases = record.fence.iter_mut().flat_map(|fence| &mut fence.releases);
        releases.for_each(|release| release.stage = ReleaseStage::Abandoned);
        let mut bench = Bench::judging(&record, Term(1), false);
        bench.falls("bmc");
        assert_eq!(bench.confirmed().evidence().grade, Grade::Observed);
    }
}

/// A cloud's word may be minutes old.
#[test]
fn a_reading_that_lowers_it_does_so_where_it_is_the_last_one() {
    let cloud = || DeviceSpec { grade: Grade::Hypervisor, ..host("cloud") };
    let old = || Some("its word may be ten minutes old".to_owned());
    for (first, last, graded) in
        [(None, None, Grade::Hypervisor), (None, old(), Grade::Claimed), (old(), None, Grade::Hypervisor)]
    {
        for least in [Grade::Hypervisor, Grade::Claimed] {
            let mut bench = Bench::wanting(least, &[&[cloud()]]);
            bench.lowered_by.clone_from(&first);
            bench.falls("cloud");
            bench.lowered_by.clone_from(&last);
            bench.reads("cloud", Off);
            match bench.verdict() {
                Verdict::Confirmed(proof) => {
                    assert!(graded >= least);
                    let evidence = proof.evidence();
                    assert_eq!(evidence.grade, graded, "{first:?}, {last:?}");
                    let told: Vec<String> = last.iter().map(|why| format!("cloud: {why}")).collect();
                    assert_eq!(evidence.lowered_by, told);
                }
                Verdict::GradeTooLow { grade, may_rise, .. } => {
                    assert_eq!((grade, graded < least, may_rise), (graded, true, true));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn the_worst_device_of_a_level_gives_the_grade() {
    let claimed = DeviceSpec { grade: Grade::Claimed, ..host("agent") };
    let proof = Bench::of(&[&[host("bmc"), claimed]]).proves();
    assert_eq!(proof.evidence().grade, Grade::Claimed);
}

#[test]
fn less_than_was_asked_for_is_not_confirmed() {
    for (least, enough) in
        [(Grade::Observed, false), (Grade::Learned, false), (Grade::Claimed, true), (Grade::Attested, true)]
    {
        let mut bench = Bench::wanting(least, &[&[host("bmc")]]).who_says_nothing();
        bench.falls("bmc");
        match bench.verdict() {
            Verdict::Confirmed(_) => assert!(enough, "{least:?}"),
            Verdict::GradeTooLow { grade: Grade::Claimed, may_rise: false, .. } => {
                assert!(!enough, "{least:?}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_proof_names_its_fence_its_leadership_and_its_epochs() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.falls("bmc");
    let proof = bench.confirmed();
    assert_eq!(*proof.node(), crate::support::node());
    assert_eq!(proof.fence(), crate::support::fence_id(1));
    assert_eq!((proof.generation().0, proof.term().0), (1, 1));
    assert_eq!(proof.devices().collect::<Vec<_>>(), [(&device("bmc"), Some(1))]);
    assert!(proof.evidence().devices[0].lasted >= s(1));
}
