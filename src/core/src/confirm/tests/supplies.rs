//! S3: all outlets of a node prove, one of two does not, and a host that is still there objects.

use crate::confirm::Verdict;
use crate::device::{DeviceSpec, Grade};
use crate::power::Power::{Off, On, Unknown};
use crate::support::{Bench, host, ms, s, supply};

/// Two outlets behind a dead BMC. Both were switched off and read Off until the window's end, sealed; `bmc` as `heard`.
fn both_off(levels: &[&[DeviceSpec]], heard: impl Fn(&mut Bench)) -> Bench {
    let mut bench = Bench::of(levels);
    bench.judge.try_level(levels.len() - 1);
    bench.reads("a", On).off("a").reads("b", On).off("b");
    for _ in 0..24 {
        bench.wait(ms(800)).reads("a", Off).reads("b", Off);
        for name in ["a", "b"] {
            if bench.wants_off(name) {
                bench.already(name);
            }
        }
        heard(&mut bench);
    }
    bench
}

fn pdus() -> [DeviceSpec; 2] {
    [supply("a"), supply("b")]
}

#[test]
fn one_of_two_outlets_is_not_off() {
    let mut bench = Bench::of(&[&pdus()]);
    bench.reads("a", On).off("a").reads("b", On).off("b").reads_off("a", 40);
    assert!(bench.is_open());
}

#[test]
fn all_outlets_are() {
    let bench = both_off(&[&pdus()], |_| {});
    assert_eq!(bench.confirmed().evidence().grade, Grade::Hypervisor, "they have no epochs");
}

#[test]
fn nothing_is_proven_while_the_power_may_still_be_falling_out_of_the_host() {
    let quick = [supply("a"), supply("b")].map(|spec| DeviceSpec { longest_cycle: s(2), ..spec });
    let mut bench = Bench::of(&[&quick]);
    bench.reads("a", On).off("a").reads("b", On).off("b");
    let mut fell = None;
    while !bench.is_confirmed() {
        bench.wait(ms(500)).reads("a", Off).reads("b", Off);
        fell = fell.or(Some(bench.now));
        for name in ["a", "b"] {
            if bench.wants_off(name) {
                bench.already(name);
            }
        }
    }
    let dark = bench.now.since(fell.unwrap());
    assert!(dark >= s(10), "confirmed {dark:?} after the outlets fell; the hold-up is 10 s");
    let proof = bench.confirmed();
    let since = proof.evidence().confirmed_at.millis() - proof.evidence().off_since.millis();
    assert!(
        since <= 1_500,
        "storage settles from when the node is dark, not from when its outlets are: {since} ms"
    );
}

#[test]
fn a_host_that_reads_on_after_the_outlets_fell_bars_and_contradicts() {
    let levels: [&[DeviceSpec]; 2] = [&[host("bmc")], &pdus()];
    let mut bench = both_off(&levels, |bench| {
        bench.reads("bmc", On);
        assert!(!bench.is_confirmed());
    });
    for _ in 0..20 {
        bench.wait(ms(800)).reads("a", Off).reads("b", Off).reads("bmc", On);
    }
    assert!(matches!(bench.verdict(), Verdict::Contradiction(_)), "{:?}", bench.verdict());
}

/// They feed another machine; then their switch restarts, and the BMC's port is back later than theirs.
#[test]
fn a_host_that_read_on_after_the_outlets_fell_bars_also_after_a_gap_in_their_readings() {
    let levels: [&[DeviceSpec]; 2] = [&[host("bmc")], &pdus()];
    let mut bench = both_off(&levels, |_| {});
    bench.reads("bmc", On).unanswered("a");
    for _ in 0..60 {
        bench.wait(ms(800)).reads("a", Off).reads("b", Off).unanswered("bmc");
        for name in ["a", "b"] {
            if bench.wants_off(name) {
                bench.already(name);
            }
        }
        assert!(!bench.is_confirmed());
    }
    bench.reads("bmc", On);
    assert!(matches!(bench.verdict(), Verdict::Contradiction(_)), "{:?}", bench.verdict());
}

#[test]
fn a_host_that_read_on_before_the_outlets_fell_does_not_contradict() {
    let levels: [&[DeviceSpec]; 2] = [&[host("bmc")], &pdus()];
    let mut bench = Bench::of(&levels);
    bench.reads("bmc", On).off("bmc").reads("bmc", On);
    bench.judge.try_level(1);
    bench.reads("a", On).off("a").reads("b", On).off("b");
    for _ in 0..50 {
        bench.wait(ms(800)).reads("a", Off).reads("b", Off);
        assert!(bench.is_open(), "it was not asked since: {:?}", bench.verdict());
    }
}

#[test]
fn a_host_that_is_silent_after_the_hold_up_is_as_it_should_be() {
    let levels: [&[DeviceSpec]; 2] = [&[host("bmc")], &pdus()];
    let mut bench = both_off(&levels, |_| {});
    assert!(bench.is_open(), "it must be asked after the hold-up");
    let asked = bench.now;
    let now = bench.wait(ms(500)).now;
    bench.judge.silence(&crate::support::device("bmc"), asked, now);
    let proof = bench.confirmed();
    assert_eq!(
        proof.evidence().lowered_by,
        ["a: it does not tell its restarts", "b: it does not tell its restarts"]
    );
}

#[test]
fn a_host_that_read_on_within_the_hold_up_and_is_silent_after_it_does_not_object() {
    let levels: [&[DeviceSpec]; 2] = [&[host("bmc")], &pdus()];
    let rounds = std::cell::Cell::new(0);
    let bench = both_off(&levels, |bench| {
        rounds.set(rounds.get() + 1);
        if rounds.get() < 5 {
            bench.reads("bmc", On)
        } else {
            bench.unanswered("bmc")
        };
    });
    assert!(bench.is_confirmed(), "{:?}", bench.verdict());
}

#[test]
fn a_host_that_was_asked_within_the_hold_up_is_asked_again() {
    let levels: [&[DeviceSpec]; 2] = [&[host("bmc")], &pdus()];
    let mut bench = Bench::of(&levels);
    bench.judge.try_level(1);
    bench.reads("a", On).off("a").reads("b", On).off("b");
    bench.wait(s(1)).reads("a", Off).reads("b", Off).silent("bmc");
    for _ in 0..24 {
        bench.wait(ms(800)).reads("a", Off).reads("b", Off);
        for name in ["a", "b"] {
            if bench.wants_off(name) {
                bench.already(name);
            }
        }
    }
    assert!(bench.is_open());
}

#[test]
fn a_host_that_still_answers_has_power_and_lowers_the_grade() {
    for word in [Off, Unknown] {
        let levels: [&[DeviceSpec]; 2] = [&[host("bmc")], &pdus()];
        let bench = both_off(&levels, |bench| {
            bench.reads("bmc", word);
        });
        let proof = bench.confirmed();
        assert_eq!(proof.evidence().grade, Grade::Claimed, "bmc answers {word:?}");
        assert!(proof.evidence().lowered_by.iter().any(|why| why == "bmc still answers: it has power"));
    }
}
