//! S3: what must hold together, one window for all, and host devices that contradict each other.

use crate::confirm::Verdict;
use crate::power::Power::{Off, On, Unknown};
use crate::support::{Bench, device, host, ms, s, supply};

fn contradicts(bench: &Bench) -> bool {
    matches!(bench.verdict(), Verdict::Contradiction(_))
}

fn two() -> Bench {
    Bench::of(&[&[host("a"), host("b")]])
}

#[test]
fn one_of_two_proves_nothing() {
    let mut bench = two();
    bench.reads("b", On).falls("a");
    assert!(bench.is_open());
    assert_eq!(bench.judge.wants_off(), [device("b")]);
}

#[test]
fn all_of_them_in_one_window() {
    let mut bench = two();
    bench.reads("a", On).off("a").reads("b", On).off("b");
    bench.reads_off("a", 2).reads_off("b", 2);
    assert!(bench.is_open(), "a was not asked since b fell");
    bench.wait(ms(500)).reads("a", Off);
    let proof = bench.confirmed();
    let devices: Vec<String> = proof.devices().map(|(id, _)| id.to_string()).collect();
    assert_eq!(devices, ["a", "b"]);
}

#[test]
fn one_that_read_otherwise_since_spoils_the_window() {
    let mut bench = two();
    bench.reads("a", On).off("a").reads("b", On).off("b");
    for _ in 0..3 {
        bench.wait(ms(900)).reads("a", Off).reads("b", Off);
    }
    assert!(bench.is_confirmed());
    bench.reads("a", Unknown);
    assert!(bench.is_open());
    bench.wait(s(1)).reads("b", Off).reads("a", Off);
    assert!(bench.is_open());
    bench.wait(s(1)).reads("b", Off).reads("a", Off);
    assert!(bench.is_confirmed());
}

#[test]
fn off_since_is_when_the_last_of_them_fell() {
    let mut bench = two();
    bench.reads("a", On).off("a").reads("b", On).off("b");
    bench.wait(s(1)).reads("a", Off).reads("b", On);
    bench.wait(s(1)).reads("a", Off).reads("b", Off);
    bench.wait(s(1)).reads("a", Off).reads("b", Off);
    let proof = bench.confirmed();
    let ago = proof.evidence().confirmed_at.millis() - proof.evidence().off_since.millis();
    assert_eq!(ago, 1_040, "b's first Off, not a's");
}

#[test]
fn a_contradiction_is_waited_out_for_thirty_seconds_and_never_confirmed() {
    let mut bench = two();
    bench.reads("a", On).off("a").reads("b", On).off("b");
    bench.wait(s(1)).reads("a", Off);
    let fell = bench.now;
    while bench.now.since(fell) < s(29) {
        bench.wait(ms(900)).reads("a", Off).reads("b", On);
        if bench.wants_off("b") {
            bench.off("b");
        }
        assert!(bench.is_open(), "{:?}", bench.verdict());
    }
    bench.wait(s(1)).reads("a", Off).reads("b", On);
    assert!(contradicts(&bench));
}

#[test]
fn a_contradiction_that_ends_in_time_is_none() {
    let mut bench = two();
    bench.reads("a", On).off("a").reads("b", On).off("b").wait(s(1)).reads("a", Off).reads("b", On);
    for _ in 0..20 {
        bench.wait(ms(900)).reads("a", Off).reads("b", Off);
    }
    assert!(bench.is_confirmed());
}

#[test]
fn what_agreed_in_between_begins_to_contradict_anew() {
    let mut bench = two();
    bench.reads("a", On).off("a").reads("b", On).off("b").wait(s(1)).reads("a", Off).reads("b", On);
    // a comes on again: both say On for a long time.
    for _ in 0..40 {
        bench.wait(s(1)).reads("a", On).reads("b", On);
    }
    bench.off("a").off("b").wait(s(1)).reads("a", Off).reads("b", On);
    assert!(bench.is_open(), "{:?}", bench.verdict());
    for _ in 0..2 {
        bench.wait(s(1)).reads("a", Off).reads("b", Off);
    }
    assert!(bench.is_confirmed());
}

#[test]
fn a_host_of_another_level_must_be_heard_and_objects_with_on() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.falls("bmc");
    assert!(bench.is_open(), "the other host device was not asked since the fall");
    bench.reads("agent", On);
    assert!(bench.is_open());
    for _ in 0..26 {
        bench.wait(s(1)).reads("bmc", Off).reads("agent", On);
    }
    assert!(bench.is_open(), "{:?}", bench.verdict());
    bench.wait(s(3)).reads("bmc", Off).reads("agent", On);
    assert!(contradicts(&bench));
}

#[test]
fn a_host_of_another_level_that_is_silent_proves_nothing_and_bars_nothing() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.falls("bmc").unanswered("agent");
    assert!(bench.is_confirmed());
}

#[test]
fn a_host_of_another_level_whose_question_never_left_was_not_asked() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.falls("bmc");
    let asked_at = bench.now;
    bench.judge.not_asked(&device("agent"), asked_at);
    assert!(bench.is_open(), "{:?}", bench.verdict());
    bench.unanswered("agent");
    assert!(bench.is_confirmed());
}

/// Both read Off in the gap of somebody's power cycle; only one of them would tell that it is over.
#[test]
fn after_a_long_window_the_others_are_asked_after_its_end() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.reads("bmc", Off).already("bmc").reads_off("bmc", 2).reads("agent", Off).reads_off("bmc", 20);
    assert!(bench.is_open());
    bench.reads("agent", Off);
    assert!(bench.is_confirmed());
}

#[test]
fn an_objection_stands_until_that_device_reads_off() {
    for hidden_by in [(|bench| bench.reads("agent", Unknown)) as fn(&mut Bench) -> &mut Bench, |bench| {
        bench.unanswered("agent")
    }] {
        let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
        bench.falls("bmc").reads("agent", On);
        hidden_by(&mut bench).reads_off("bmc", 2);
        hidden_by(&mut bench);
        assert!(bench.is_open(), "it said On after the fall, and nothing takes that back but an Off");
        bench.reads("agent", Off);
        assert!(bench.is_confirmed());
    }
}

/// The readings of the level break off for a moment, and go on: what was said since the fall is said still.
#[test]
fn an_objection_outlives_a_gap_in_the_readings_of_the_level() {
    for hidden_by in [(|bench| bench.reads("bmc", Unknown)) as fn(&mut Bench) -> &mut Bench, |bench| {
        bench.unanswered("bmc")
    }] {
        let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
        bench.falls("bmc").reads("agent", On);
        hidden_by(&mut bench).reads_off("bmc", 3).unanswered("agent").reads_off("bmc", 3);
        assert!(bench.is_open(), "{:?}", bench.verdict());
        bench.reads("agent", Off).reads_off("bmc", 1);
        assert!(bench.is_confirmed(), "{:?}", bench.verdict());
    }
}

/// It came on again, and our next off took it down: the other device's On was of the time between.
#[test]
fn an_objection_of_the_time_between_two_falls_does_not_stand() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.falls("bmc").reads("agent", On).reads("bmc", On).reads("agent", On);
    bench.falls("bmc").unanswered("agent").reads_off("bmc", 3);
    assert!(bench.is_confirmed(), "{:?}", bench.verdict());
}

#[test]
fn a_device_that_restarted_cannot_take_its_objection_back() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.falls("bmc").reads("agent", On).restarts("agent").reads("agent", Off).reads_off("bmc", 2);
    bench.reads("agent", Off);
    assert!(bench.is_open(), "a restarted device that says Off is not believed");
    bench.reads("agent", On).reads("agent", Off);
    assert!(bench.is_confirmed(), "it read On after the loss, and then fell");
}

#[test]
fn an_on_from_before_the_fall_does_not_contradict_it() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.reads("agent", On).falls("bmc").stays_off("bmc", s(60));
    assert!(bench.is_open(), "it was not asked since: {:?}", bench.verdict());
    bench.unanswered("agent");
    assert!(bench.is_confirmed());
}

#[test]
fn an_answer_to_an_older_question_does_not_hide_an_objection() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.falls("bmc");
    let early = bench.now;
    bench.wait(ms(100)).reads("agent", On).hears("agent", Unknown, early);
    assert!(bench.is_open());
}

#[test]
fn the_others_are_asked_once_the_level_begins_to_fall() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")], &[supply("pdu")]]);
    let due = |bench: &Bench| -> Vec<String> {
        bench.judge.readings_due().into_iter().map(|(id, _)| id.to_string()).collect()
    };
    assert_eq!(due(&bench), ["bmc"]);
    bench.reads("bmc", On);
    assert_eq!(due(&bench), [] as [&str; 0], "the off comes first");
    bench.off("bmc").wait(s(1)).reads("bmc", Off);
    assert_eq!(due(&bench), ["bmc", "agent"], "a supply of another level says nothing");
}

#[test]
fn the_next_level_begins_with_what_was_seen_and_needs_its_own_off() {
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.reads("bmc", On).off("bmc").silent("bmc");
    bench.judge.try_level(1);
    bench.reads("agent", Off);
    assert!(bench.wants_off("agent"));
    bench.already("agent").reads_off("agent", 3).unanswered("bmc");
    assert!(bench.is_open(), "it read Off before our off of this level: the long window");
    bench.reads_off("agent", 20).unanswered("bmc");
    assert_eq!(bench.confirmed().evidence().level, 2);
}

#[test]
fn a_level_that_is_not_there_proves_nothing() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.falls("bmc");
    bench.judge.try_level(1);
    assert!(bench.is_open());
}
