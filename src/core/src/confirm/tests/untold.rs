//! S2: a device that tells of its lives, by the settings with which the fence began, and tells of none at first.

use crate::power::Epoch;
use crate::power::Power::{Off, On};
use crate::support::{Bench, device, host, s};

/// It tells of its lives, by the settings with which the fence began, and tells of none until its silence is over.
#[test]
fn a_silence_before_the_first_life_that_it_tells_of_is_a_loss() {
    for (silence, lost) in [(9, false), (11, true)] {
        let mut bench = Bench::of_unknown(&[&[host("bmc")]]);
        bench.answers_in("bmc", None).reads("bmc", On).off_fails("bmc");
        bench.wait(s(silence)).answers_in("bmc", Some(Epoch::FIRST)).reads("bmc", Off);
        assert_eq!(bench.lost.contains(&device("bmc")), lost, "{silence}");
        bench.off("bmc").stays_off("bmc", s(60)).already("bmc").stays_off("bmc", s(3));
        assert_eq!(bench.is_confirmed(), !lost, "{silence}: {:?}", bench.verdict());
    }
}

/// The first life is told in the middle of the fence: the off of before was taken in nobody knows which, and another one is sent.
#[test]
fn a_life_that_is_told_first_after_our_off_is_another_one() {
    let mut bench = Bench::of_unknown(&[&[host("bmc")]]);
    bench.answers_in("bmc", None).reads("bmc", On).off("bmc").wait(s(1)).reads("bmc", Off);
    bench.answers_in("bmc", Some(Epoch::FIRST)).wait(s(1)).reads("bmc", Off);
    assert!(bench.is_open() && bench.wants_off("bmc"));
    bench.off("bmc").stays_off("bmc", s(20)).already("bmc").stays_off("bmc", s(3));
    assert!(bench.is_confirmed(), "{:?}", bench.verdict());
}
