//! S2: where the fall was not seen, Off must outlast the longest power cycle, and our off is sent again at the end.

use crate::device::DeviceSpec;
use crate::power::Power::{Off, On, Unknown};
use crate::support::{Bench, host, ms, s};

fn why(bench: &Bench) -> Option<String> {
    bench.confirmed().evidence().devices[0].long_window.clone()
}

/// Off for less than the window does not prove, more does, and only after a second off.
#[track_caller]
fn wants_the_long_window(mut bench: Bench, expected: &str) {
    bench.stays_off("bmc", s(15));
    assert!(bench.is_open() && !bench.wants_off("bmc"), "before the window's end");
    bench.stays_off("bmc", s(3));
    assert!(bench.is_open() && bench.wants_off("bmc"), "the off is sent again at the end");
    bench.already("bmc");
    assert!(bench.is_open(), "a reading asked for after that off is wanted too");
    bench.wait(s(1)).reads("bmc", Off);
    assert_eq!(why(&bench).as_deref(), Some(expected));
}

#[test]
fn after_a_first_look_that_said_off() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).off("bmc");
    wants_the_long_window(bench, "not seen on before the off");
}

#[test]
fn after_a_first_look_that_said_nothing() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Unknown).off("bmc");
    wants_the_long_window(bench, "not seen on before the off");
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).silent("bmc").off("bmc");
    wants_the_long_window(bench, "not seen on before the off");
}

#[test]
fn after_an_answer_already_off() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).already("bmc");
    wants_the_long_window(bench, "already off");
}

#[test]
fn without_epochs() {
    let mut bench = Bench::of(&[&[DeviceSpec { has_epochs: false, ..host("bmc") }]]);
    bench.reads("bmc", On).off("bmc");
    wants_the_long_window(bench, "the device has no epochs");
}

#[test]
fn for_a_successor() {
    let mut bench = Bench::resumed(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc");
    wants_the_long_window(bench, "the fence was taken over");
}

#[test]
fn after_a_session_that_we_ended_ourselves() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.falls("bmc").reconnects("bmc").reads("bmc", Off);
    assert!(bench.is_open() && bench.wants_off("bmc"), "evidence from zero");
    assert_eq!(bench.lost, []);
    bench.already("bmc");
    wants_the_long_window(bench, "the fence was taken over");
}

#[test]
fn the_window_is_the_device_s_own() {
    let slow = DeviceSpec { longest_cycle: s(120), ..host("bmc") };
    let mut bench = Bench::of(&[&[slow]]);
    bench.reads("bmc", Off).already("bmc").stays_off("bmc", s(119));
    assert!(!bench.wants_off("bmc"));
    bench.reads_off("bmc", 5);
    assert!(bench.is_confirmed());
}

#[test]
fn the_node_that_comes_up_in_the_window_is_caught() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).already("bmc").stays_off("bmc", s(8)).reads("bmc", On);
    assert!(bench.wants_off("bmc") && bench.is_open());
    // Seen on in this very epoch, and then it fell: the short way.
    bench.off("bmc").reads_off("bmc", 2);
    assert_eq!(why(&bench), None);
}

#[test]
fn unknown_in_the_window_starts_it_again() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).already("bmc").stays_off("bmc", s(14)).reads("bmc", Unknown);
    wants_the_long_window(bench, "already off");
}

#[test]
fn an_off_that_was_repeated_within_the_window_is_not_the_one_at_its_end() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).already("bmc").stays_off("bmc", s(5)).already("bmc");
    bench.stays_off("bmc", s(12));
    assert!(bench.is_open() && bench.wants_off("bmc"));
}

#[test]
fn the_off_at_the_end_must_be_taken() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).already("bmc").stays_off("bmc", s(18)).off_fails("bmc");
    assert!(!bench.wants_off("bmc"), "another look first");
    bench.stays_off("bmc", s(2));
    assert!(bench.is_open() && bench.wants_off("bmc"));
    bench.already("bmc").wait(ms(500)).reads("bmc", Off);
    assert!(bench.is_confirmed());
}

/// The answer lay there unheard while the process was stopped: a foreign power cycle may have begun since.
#[test]
fn a_look_is_as_old_as_its_question() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    let asked_at = bench.now;
    bench.wait(s(60)).hears("bmc", On, asked_at).off("bmc");
    wants_the_long_window(bench, "not seen on before the off");
}

#[test]
fn what_was_asked_long_ago_confirms_nothing_now() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc").reads_off("bmc", 1).wait(s(1));
    let asked_at = bench.now;
    bench.wait(s(3_600)).hears("bmc", Off, asked_at);
    assert!(bench.is_open());
    bench.reads_off("bmc", 2);
    assert!(bench.is_confirmed());
}

/// Three dwells are three seconds here.
#[test]
fn the_time_of_the_off_that_seals_it_is_no_gap_where_it_is_answered_within_its_call() {
    for (took, is_open) in [(s(4), false), (s(9), false), (s(11), true)] {
        let mut bench = Bench::of(&[&[DeviceSpec { has_epochs: false, call: s(10), ..host("bmc") }]]);
        bench.reads("bmc", On).off("bmc");
        bench.stays_off("bmc", s(18));
        assert!(bench.wants_off("bmc"));
        bench.already_after("bmc", took);
        assert!(bench.is_open(), "an off is no reading");
        bench.wait(s(1)).reads("bmc", Off);
        assert_eq!(bench.is_open(), is_open, "answered after {took:?}");
    }
}

/// Some boards know no word for "it is off already", and answer the off that seals the window with an error.
#[test]
fn a_refused_repeat_seals_the_window_of_an_off_that_was_taken() {
    let no_epochs = DeviceSpec { has_epochs: false, ..host("bmc") };
    for spec in [host("bmc"), no_epochs] {
        let mut bench = Bench::of(&[&[spec]]);
        bench.reads("bmc", Off).off("bmc").stays_off("bmc", s(18));
        assert!(bench.is_open() && bench.wants_off("bmc"));
        bench.refuses("bmc");
        assert!(bench.is_open(), "an off is no reading");
        bench.wait(ms(500)).reads("bmc", Off);
        assert!(bench.is_confirmed());
    }
}

#[test]
fn a_refused_repeat_within_the_window_is_not_the_one_at_its_end() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).off("bmc").stays_off("bmc", s(5)).refuses("bmc").stays_off("bmc", s(12));
    assert!(bench.is_open() && bench.wants_off("bmc"));
}

/// It may refuse every off, and be off by nobody's doing.
#[test]
fn a_refused_off_proves_nothing_where_none_was_taken() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).refuses("bmc").stays_off("bmc", s(18)).refuses("bmc").stays_off("bmc", s(18));
    assert!(bench.is_open() && bench.wants_off("bmc"));
}

/// "Already off" is the device's word for its state, and no proof that an off of ours works there.
#[test]
fn a_refused_repeat_is_none_after_an_off_that_was_answered_already_off() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).already("bmc").stays_off("bmc", s(18)).refuses("bmc").stays_off("bmc", s(5));
    assert!(bench.is_open() && bench.wants_off("bmc"));
}

#[test]
fn a_refused_repeat_is_none_in_another_life_or_after_an_on() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).off("bmc").stays_off("bmc", s(5)).reconnects("bmc").stays_off("bmc", s(18));
    bench.refuses("bmc").stays_off("bmc", s(5));
    assert!(bench.is_open() && bench.wants_off("bmc"), "what the life before took is not known in this one");
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off).off("bmc").stays_off("bmc", s(5)).reads("bmc", On).reads("bmc", Off);
    bench.refuses("bmc").stays_off("bmc", s(18)).refuses("bmc").stays_off("bmc", s(5));
    assert!(bench.is_open() && bench.wants_off("bmc"), "somebody else's power cycle");
}
