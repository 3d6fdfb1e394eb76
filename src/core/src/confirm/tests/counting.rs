//! S2: several in a row, spaced by a dwell; what starts the count again; S5: what bars it.

use crate::device::DeviceSpec;
use crate::power::Power::{Off, On, Unknown};
use crate::support::{Bench, Player, boot, device, host, ms, s};

/// One device that fell and has read Off once, just now.
fn once() -> Bench {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc").wait(s(1)).reads("bmc", Off);
    assert!(bench.is_open(), "one reading proves nothing");
    bench
}

#[test]
fn readings_closer_than_a_dwell_count_as_one() {
    let mut bench = once();
    for _ in 0..4 {
        bench.wait(ms(200)).reads("bmc", Off);
        assert!(bench.is_open(), "asked less than a second after the first was answered");
    }
    bench.wait(ms(200)).reads("bmc", Off);
    assert!(bench.is_confirmed());
}

/// Whoever stores the proof goes by this: a write may take longer than its readings are in a row with the next one.
#[test]
fn a_proof_is_fresh_for_three_dwells_after_its_last_readings() {
    let mut bench = Bench::of(&[&[host("a"), host("b")]]);
    bench.reads("a", On).reads("b", On).off("a").off("b");
    bench.reads_off("a", 1).reads_off("b", 1).reads_off("a", 1);
    let of_a = bench.now;
    bench.reads_off("b", 1);
    assert!(bench.is_confirmed());
    assert_eq!(bench.judge.fresh_until(), of_a + s(3), "the older of the two readings counts");
}

#[test]
fn the_dwell_counts_from_the_answer_to_the_next_asking() {
    let mut bench = once();
    let answered = bench.now;
    bench.wait(s(3));
    let asked = boot(answered.since_boot().as_millis() as u64 + 999);
    bench.hears("bmc", Off, asked);
    assert!(bench.is_open(), "answered late, but asked for too early");
}

#[test]
fn as_many_as_the_spec_wants() {
    let five = DeviceSpec { readings: 5, ..host("bmc") };
    let mut bench = Bench::of(&[&[five]]);
    bench.reads("bmc", On).off("bmc").reads_off("bmc", 4);
    assert!(bench.is_open());
    bench.reads_off("bmc", 1);
    assert!(bench.is_confirmed());
}

#[test]
fn on_unknown_and_silence_start_it_again() {
    for spoil in [
        (|bench| bench.wait(s(1)).reads("bmc", On).off("bmc")) as fn(&mut Bench) -> &mut Bench,
        |bench| bench.wait(s(1)).reads("bmc", Unknown),
        |bench| bench.silent("bmc"),
    ] {
        let mut bench = once();
        spoil(&mut bench);
        bench.wait(s(1)).reads("bmc", Off);
        assert!(bench.is_open());
        bench.wait(s(1)).reads("bmc", Off);
        assert!(bench.is_confirmed());
    }
}

#[test]
fn a_gap_of_three_dwells_starts_it_again() {
    let mut bench = once();
    bench.wait(ms(2_999)).reads("bmc", Off);
    assert!(bench.is_confirmed());
    let mut bench = once();
    bench.wait(s(3)).reads("bmc", Off);
    assert!(bench.is_open());
}

#[test]
fn an_answer_to_an_older_question_neither_counts_nor_hides_a_newer_one() {
    let mut bench = once();
    let early = bench.now;
    bench.wait(s(1)).reads("bmc", On).off("bmc").wait(s(1)).reads("bmc", Off);
    // Asked before the On was, answered after it.
    bench.wait(s(1)).hears("bmc", Off, early);
    assert!(bench.is_open());
}

#[test]
fn what_proved_three_dwells_ago_proves_no_more() {
    let mut bench = once();
    bench.wait(s(1)).reads("bmc", Off);
    assert!(bench.wait(ms(2_900)).is_confirmed());
    assert!(bench.wait(ms(200)).is_open());
}

#[test]
fn a_reading_that_lacks_its_epoch_is_not_off_but_may_be_on() {
    let mut bench = once();
    bench.answers_in("bmc", None).wait(s(1)).reads("bmc", Off);
    assert!(bench.is_open());
    let mut bench = Bench::of(&[&[host("bmc")], &[host("agent")]]);
    bench.falls("bmc").reads("agent", Unknown);
    assert!(bench.is_confirmed());
    bench.answers_in("agent", None).reads("agent", On);
    assert!(bench.is_open(), "an explicit On objects, however it came");
}

/// As where checks did not find out yet that it tells its restarts: it is judged as one that does not.
#[test]
fn a_device_that_is_declared_without_epochs_and_shows_one_takes_the_long_window() {
    for epoch in [None, Some(Bench::first_epoch())] {
        let plain = DeviceSpec { has_epochs: false, ..host("bmc") };
        let mut bench = Bench::of(&[&[plain]]);
        bench.answers_in("bmc", epoch).falls("bmc").reads_off("bmc", 10);
        assert!(bench.is_open(), "{epoch:?}");
        bench.stays_off("bmc", s(8)).already("bmc").wait(s(1)).reads("bmc", Off);
        assert!(bench.is_confirmed(), "{epoch:?}");
    }
}

/// S5: a fence that won over an unfence whose on is still open.
#[test]
fn no_off_counts_while_an_on_is_open() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.on_intent(&["bmc"]).unwrap();
    player.fence(crate::support::request(2, &[&[host("bmc")]], &[]));
    let mut bench = Bench::judging(player.record(), player.leadership.term(), false);
    bench.falls("bmc").stays_off("bmc", s(30));
    assert!(bench.is_open());
    player.close_all();
    bench.ledger = player.record().ledger.clone();
    assert!(bench.is_open(), "what was read meanwhile does not count either");
    bench.reads_off("bmc", 1);
    assert!(bench.is_open());
    bench.reads_off("bmc", 1);
    assert!(bench.is_confirmed());
}

#[test]
fn an_unhold_that_opens_after_the_count_bars_the_verdict() {
    let mut bench = once();
    bench.wait(s(1)).reads("bmc", Off);
    assert!(bench.is_confirmed());
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    player.confirm();
    player.close_all();
    player.unfence().unwrap();
    player.apply(crate::event::Event::UnholdIntent);
    bench.ledger = player.record().ledger.clone();
    assert!(bench.is_open());
    assert_eq!(player.open_effects(), [format!("unhold of {}", device("bmc"))]);
}
