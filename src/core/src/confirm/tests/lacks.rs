//! What is told of an Off that is read and does not count yet.

use crate::device::DeviceSpec;
use crate::power::Power::{Off, On};
use crate::support::{Bench, device, host, s};

#[track_caller]
fn lacks(bench: &Bench, expected: Option<&str>) {
    assert_eq!(bench.judge.lacks(&device("bmc"), bench.now).as_deref(), expected);
}

#[test]
fn an_off_of_ours() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", Off);
    lacks(&bench, Some("no off was taken before it read so"));
}

#[test]
fn readings_and_their_dwell() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc");
    lacks(&bench, None);
    bench.wait(s(1)).reads("bmc", Off);
    lacks(&bench, Some("1 of 2 readings, each a dwell of 1s apart"));
    bench.wait(s(4));
    lacks(&bench, Some("it was not asked for longer than three times its dwell of 1s"));
}

#[test]
fn nothing_once_it_counts() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc").reads_off("bmc", 2);
    assert!(bench.is_confirmed());
    lacks(&bench, None);
}

#[test]
fn the_long_window_and_the_off_at_its_end() {
    let mut bench = Bench::of(&[&[DeviceSpec { has_epochs: false, ..host("bmc") }]]);
    bench.reads("bmc", On).off("bmc").stays_off("bmc", s(5));
    lacks(&bench, Some("Off for 4s of 15s (longest_cycle), asked for as: the device has no epochs"));
    bench.stays_off("bmc", s(13));
    assert!(bench.is_open() && bench.wants_off("bmc"));
    lacks(&bench, Some("Off for 15s (longest_cycle), and the off after that was not taken yet"));
}
