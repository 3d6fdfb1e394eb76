//! S2: our own off, always; readings count only after it was taken.

use crate::device::{DeviceSpec, Grade};
use crate::power::Power::{Off, On, Unknown};
use crate::support::{Bench, boot, device, host, ms, s};

fn one() -> Bench {
    Bench::of(&[&[host("bmc")]])
}

#[test]
fn a_node_that_was_seen_on_and_fell_is_confirmed_by_two_readings_a_dwell_apart() {
    let mut bench = one();
    bench.falls("bmc");
    let proof = bench.confirmed();
    let evidence = proof.evidence();
    assert_eq!((evidence.level, evidence.devices[0].readings), (1, 2));
    assert_eq!(evidence.devices[0].long_window, None);
    assert_eq!(evidence.devices[0].said, "bmc Off");
    assert_eq!(evidence.devices[0].hold, ["restore policy always-off"]);
}

#[test]
fn it_is_asked_at_once_when_it_took_the_off_and_then_at_a_pace() {
    let due = |bench: &Bench| bench.judge.readings_due()[0].1.since(bench.now);
    let mut bench = one();
    bench.reads("bmc", On).off("bmc");
    assert_eq!(due(&bench), ms(0));
    bench.reads("bmc", On);
    assert_eq!(due(&bench), ms(250), "it has not fallen yet");
    bench.wait(ms(250)).reads("bmc", Off);
    assert_eq!(due(&bench), s(1), "a dwell between two that count");
}

/// What many share is asked at the interval of its polls also while it falls.
#[test]
fn a_provider_is_polled() {
    let due = |bench: &Bench| bench.judge.readings_due()[0].1.since(bench.now);
    let poll = s(2);
    let spec = DeviceSpec { grade: Grade::Hypervisor, dwell: poll, ..host("ec2") };
    let mut bench = Bench::of(&[&[spec]]);
    bench.reads("ec2", On).off("ec2");
    assert_eq!(due(&bench), ms(0), "at once when it took the off");
    bench.reads("ec2", Unknown);
    assert_eq!(due(&bench), poll);
    bench.wait(poll).reads("ec2", Off);
    assert_eq!(due(&bench), poll);
    bench.wait(poll).silent("ec2");
    assert_eq!(due(&bench), s(1), "it did not answer");
}

#[test]
fn nothing_is_sent_before_the_device_was_looked_at() {
    let mut bench = one();
    assert!(!bench.wants_off("bmc"));
    bench.reads("bmc", On);
    assert!(bench.wants_off("bmc"));
}

#[test]
fn a_look_from_before_the_hold_does_not_serve() {
    let mut bench = one();
    bench.reads("bmc", On);
    bench.judge.held(&device("bmc"), &[]);
    assert!(!bench.wants_off("bmc"), "the look before the off comes after the hold");
    bench.reads("bmc", Off);
    assert!(bench.wants_off("bmc"));
}

#[test]
fn an_off_from_before_the_hold_does_not_count() {
    let mut bench = one();
    bench.falls("bmc");
    bench.judge.held(&device("bmc"), &["restore policy always-off".to_owned()]);
    assert!(!bench.is_confirmed(), "the off is sent after the hold was engaged");
    bench.reads_off("bmc", 30);
    assert_eq!(bench.confirmed().evidence().devices[0].long_window.as_deref(), Some("already off"));
}

#[test]
fn silence_is_a_look_too_and_the_off_goes_out_blind() {
    let mut bench = one();
    bench.silent("bmc");
    assert!(bench.wants_off("bmc"));
    // It is sent in the first session that there is; to count, it is sent again after a look there.
    bench.off("bmc").reads_off("bmc", 1);
    assert!(!bench.is_confirmed());
}

#[test]
fn a_node_that_reads_off_gets_our_own_off_all_the_same() {
    let mut bench = one();
    bench.stays_off("bmc", s(60));
    assert!(bench.wants_off("bmc") && bench.is_open(), "Off without an off of ours proves nothing");
}

#[test]
fn an_off_that_was_not_taken_starts_nothing() {
    let mut bench = one();
    bench.reads("bmc", On).off_fails("bmc").stays_off("bmc", s(60));
    assert!(bench.is_open() && bench.wants_off("bmc"));
}

#[test]
fn after_an_off_that_failed_the_node_is_looked_at_again() {
    let mut bench = one();
    bench.reads("bmc", On).off_fails("bmc");
    assert!(!bench.wants_off("bmc"), "the On from before may be the last one before a foreign power cycle");
    bench.reads("bmc", Off).already("bmc").reads_off("bmc", 3);
    assert!(bench.is_open(), "it was not seen on just before the off that was taken");
}

#[test]
fn what_was_asked_before_the_off_was_answered_does_not_count() {
    let mut bench = one();
    bench.reads("bmc", On);
    let before = bench.now;
    bench.off("bmc").wait(s(1)).hears("bmc", Off, before);
    bench.wait(s(1)).reads("bmc", Off);
    assert!(bench.is_open(), "one of the two was asked for before the off was taken");
    bench.wait(s(1)).reads("bmc", Off);
    assert!(bench.is_confirmed());
}

#[test]
fn a_look_that_is_old_is_not_the_last_thing_before_the_off() {
    let mut bench = one();
    // The store was away for a minute between the look and the off.
    bench.reads("bmc", On).wait(s(60)).off("bmc").reads_off("bmc", 3);
    assert!(bench.is_open(), "a power cycle may have begun in that minute");
    bench.reads_off("bmc", 20);
    assert!(bench.is_confirmed());
}

#[test]
fn an_on_that_does_not_name_its_epoch_does_not_show_a_fall_in_this_one() {
    let mut bench = one();
    bench.reads("bmc", Unknown).answers_in("bmc", None).reads("bmc", On);
    bench.answers_in("bmc", Some(Bench::first_epoch())).off("bmc").reads_off("bmc", 3);
    assert!(bench.is_open(), "the long window");
    bench.reads_off("bmc", 20);
    assert!(bench.is_confirmed());
}

#[test]
fn on_after_off_voids_our_off_and_it_is_due_at_once() {
    let mut bench = one();
    bench.reads("bmc", On).off("bmc").reads_off("bmc", 1);
    bench.wait(s(1)).reads("bmc", On);
    assert!(bench.wants_off("bmc"));
    bench.off("bmc").reads_off("bmc", 1);
    assert!(bench.is_open(), "On starts the count again");
    bench.reads_off("bmc", 1);
    assert!(bench.is_confirmed());
}

#[test]
fn an_off_that_is_repeated_after_an_on_is_judged_by_the_look_before_it() {
    let mut bench = one();
    bench.reads("bmc", On).off("bmc").reads_off("bmc", 1);
    // Somebody switches it on, and a power cycle of theirs begins before our next off arrives.
    bench.wait(s(1)).reads("bmc", On).wait(ms(250)).reads("bmc", Off).already("bmc").reads_off("bmc", 3);
    assert!(bench.is_open(), "the off that counts found it off already");
    bench.reads_off("bmc", 20);
    assert!(bench.is_confirmed());
}

#[test]
fn what_was_off_and_is_on_needs_a_new_off_whatever_was_read_in_between() {
    for between in
        [(|bench| bench.reads("bmc", Unknown)) as fn(&mut Bench) -> &mut Bench, |bench| bench.silent("bmc")]
    {
        let mut bench = one();
        bench.reads("bmc", On).off("bmc").reads_off("bmc", 1);
        between(&mut bench).reads("bmc", On);
        assert!(bench.wants_off("bmc"));
        bench.stays_off("bmc", s(30));
        assert!(bench.is_open(), "it went off by somebody else's hand");
    }
}

#[test]
fn an_off_that_is_ignored_is_sent_again() {
    let mut bench = one();
    bench.reads("bmc", On).off("bmc");
    for _ in 0..14 {
        bench.wait(s(1)).reads("bmc", On);
        assert!(!bench.wants_off("bmc"), "real falls take a while");
    }
    bench.wait(s(2)).reads("bmc", On);
    assert!(bench.wants_off("bmc"));
    bench.off("bmc").reads_off("bmc", 2);
    assert!(bench.is_confirmed());
}

/// It was off already when our off came: whoever switched it on did so after that.
#[test]
fn what_comes_on_after_an_off_that_found_it_off_is_switched_off_at_once() {
    let mut bench = one();
    bench.reads("bmc", Off).already("bmc").wait(ms(250)).reads("bmc", On);
    assert!(bench.wants_off("bmc"));
    bench.off("bmc").wait(ms(250)).reads("bmc", On);
    assert!(!bench.wants_off("bmc"), "this one may still be falling");
}

#[test]
fn an_unknown_device_is_nobody() {
    let mut bench = one();
    bench.falls("bmc");
    bench.says_whose("other", crate::device::IdentityMatch::Mismatch, boot(0));
    bench.judge.off_failed(&device("other"));
    bench.judge.silence(&device("other"), boot(0), boot(1));
    assert!(!bench.judge.off_taken(&device("other"), boot(0), boot(0), None, false));
    assert!(bench.is_confirmed());
}

#[test]
fn only_a_fence_that_is_open_is_judged() {
    let player = crate::support::Player::new();
    let rules = crate::rules::Rules::default();
    assert!(crate::confirm::Judge::new(player.record(), crate::ids::Term(1), &rules, false).is_none());
}

#[test]
fn unknown_is_never_off() {
    let mut bench = one();
    bench.reads("bmc", On).off("bmc");
    for _ in 0..60 {
        bench.wait(s(1)).reads("bmc", Unknown);
    }
    assert!(bench.is_open());
}
