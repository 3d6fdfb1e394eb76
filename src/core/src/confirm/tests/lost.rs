//! S2: what a session counts for that was lost within the fence.

use crate::confirm::Verdict;
use crate::device::{DeviceClass, DeviceSpec, Grade, IdentityMatch};
use crate::event::Event;
use crate::power::Power::{Off, On};
use crate::power::{Began, Epoch};
use crate::support::{Bench, Player, device, host, s};
use crate::time::BootTime;

fn trusting() -> DeviceSpec {
    DeviceSpec { trust_after_restart: Some(s(60)), ..host("bmc") }
}

fn is_restarted(bench: &Bench) -> bool {
    matches!(bench.verdict(), Verdict::Restarted(devices) if devices == [device("bmc")])
}

#[test]
fn its_off_does_not_count_and_the_loss_is_told_once() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc").reads_off("bmc", 1).restarts("bmc").reads("bmc", Off);
    assert_eq!(bench.lost, [device("bmc")]);
    assert!(bench.is_open() && bench.wants_off("bmc"), "the off is sent again all the same");
    bench.already("bmc").reads_off("bmc", 60);
    assert!(is_restarted(&bench));
    assert_eq!(bench.lost, [device("bmc")]);
}

#[test]
fn it_counts_again_once_it_read_on_and_fell() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc").restarts("bmc").reads("bmc", On).off("bmc").reads_off("bmc", 2);
    assert!(bench.is_confirmed());
}

#[test]
fn an_on_from_before_the_loss_does_not_serve() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).restarts("bmc");
    // The off is taken in the new session, before anything was read there.
    bench.off("bmc").reads_off("bmc", 30);
    assert!(!bench.is_confirmed());
    assert_eq!(bench.lost, [device("bmc")]);
}

#[test]
fn an_off_taken_in_a_new_epoch_does_not_count_until_there_was_a_look() {
    for epoch in [Epoch::FIRST.next(), Epoch::FIRST.next_after_loss(BootTime::default())] {
        let mut bench = Bench::of(&[&[host("bmc")]]);
        bench.reads("bmc", On).answers_in("bmc", Some(epoch)).off("bmc");
        assert!(!bench.wants_off("bmc"), "first a look");
        bench.wait(s(1)).reads("bmc", Off).wait(s(1)).reads("bmc", Off);
        assert!(!bench.is_confirmed() && bench.wants_off("bmc"));
    }
}

#[test]
fn where_it_is_trusted_a_long_dwell_serves_and_the_grade_is_claimed() {
    let mut bench = Bench::of(&[&[trusting()]]);
    bench.reads("bmc", On).off("bmc").restarts("bmc").reads("bmc", Off).already("bmc");
    bench.stays_off("bmc", s(58));
    assert!(bench.is_open() && !bench.wants_off("bmc"));
    bench.reads_off("bmc", 6);
    let proof = bench.confirmed();
    assert_eq!(proof.evidence().grade, Grade::Claimed);
    assert_eq!(proof.evidence().lowered_by, ["bmc: it restarted and was trusted"]);
}

#[test]
fn a_device_that_is_trusted_and_fell_needs_no_trust() {
    let mut bench = Bench::of(&[&[trusting()]]);
    bench.reads("bmc", On).off("bmc").restarts("bmc").reads("bmc", On).off("bmc").reads_off("bmc", 2);
    assert_eq!(bench.confirmed().evidence().grade, Grade::Observed);
}

#[test]
fn the_loss_that_is_stored_binds_successors() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.apply(Event::Lost { device: device("bmc") });
    player.succeeds();
    let mut bench = Bench::judging(player.record(), player.leadership.term(), true);
    bench.reads("bmc", Off).already("bmc").reads_off("bmc", 60);
    assert!(is_restarted(&bench));
}

/// The identity was answered and the hold engaged before; the first reading is already in the session after the loss.
#[test]
fn a_first_epoch_that_follows_a_loss_is_a_loss() {
    let after = Epoch { id: 6, loss: None }.next_after_loss(BootTime::default());
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.answers_in("bmc", Some(after)).reads("bmc", Off).already("bmc").reads_off("bmc", 60);
    assert!(is_restarted(&bench), "a BMC that restarted under our hold says Off for a live host");
    assert_eq!(bench.lost, [device("bmc")]);
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.answers_in("bmc", Some(after)).falls("bmc");
    assert!(bench.is_confirmed(), "seen on and fallen, it is believed");
}

/// Found by `confirmed_only_when_it_stays_dark`: the only answer of the epoch after the loss did not arrive, and the one
/// that did was of a session after it, which follows one that was closed.
#[test]
fn a_loss_whose_own_epoch_was_never_heard_is_a_loss() {
    let unheard = |bench: &mut Bench| {
        bench.restarts("bmc").reconnects("bmc");
        bench.reads("bmc", Off).already("bmc").reads_off("bmc", 60);
        assert!(is_restarted(bench));
        assert_eq!(bench.lost, [device("bmc")]);
    };
    let mut bench = Bench::of(&[&[host("bmc")]]);
    unheard(&mut bench);
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc");
    unheard(&mut bench);
    // One that was heard is no news in the epochs after it.
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.restarts("bmc").reads("bmc", On).off("bmc").reconnects("bmc").reads("bmc", Off);
    assert_eq!(bench.lost, [device("bmc")]);
}

/// A process that takes a fence over has seen many a loss since it started, and sessions that ended well after it.
#[test]
fn a_loss_of_long_ago_was_not_lost_within_a_fence_that_was_taken_over() {
    let fence = || Bench::resumed(&[&[host("bmc")]]);
    let took_over = |bench: &Bench| Began::Elsewhere { led_since: bench.now };
    let long_ago = Epoch { id: 6, loss: None }.next_after_loss(BootTime::default());
    for (epoch, lost) in [(long_ago.next(), false), (long_ago, true)] {
        let mut bench = fence();
        bench.judge = bench.judge.clone().begun(took_over(&bench));
        bench.answers_in("bmc", Some(epoch)).reads("bmc", Off).already("bmc").reads_off("bmc", 60);
        assert_eq!((is_restarted(&bench), bench.is_confirmed()), (lost, !lost), "{epoch:?}");
    }
    let mut bench = fence();
    bench.judge = bench.judge.clone().begun(took_over(&bench));
    bench.wait(s(1)).restarts("bmc").reconnects("bmc");
    bench.reads("bmc", Off).already("bmc").reads_off("bmc", 60);
    assert!(is_restarted(&bench), "it was lost since this process leads");
}

/// Nothing that it said in the fence was said in a session that is gone: it is as one that was never asked before.
#[test]
fn a_session_that_had_stopped_answering_before_the_fence_was_not_lost_within_it() {
    for (ago, lost) in [(s(1), false), (s(0), true)] {
        let mut bench = Bench::of(&[&[host("bmc")]]).begun_now();
        let since = BootTime::from_boot(bench.now.since_boot() - ago);
        let after = Epoch { id: 6, loss: None }.next_after_loss(since);
        bench.wait(s(1)).answers_in("bmc", Some(after)).reads("bmc", Off).already("bmc").reads_off("bmc", 60);
        assert_eq!((is_restarted(&bench), bench.is_confirmed()), (lost, !lost), "{ago:?} before");
        assert_eq!(bench.lost.len(), usize::from(lost));
    }
}

#[test]
fn what_is_lost_within_the_fence_binds_also_after_a_loss_from_before() {
    let mut bench = Bench::of(&[&[host("bmc")]]).begun_now();
    let before = Epoch { id: 6, loss: None }.next_after_loss(BootTime::default());
    bench.wait(s(1)).answers_in("bmc", Some(before)).reads("bmc", On);
    bench.restarts("bmc").reads("bmc", Off).already("bmc").reads_off("bmc", 60);
    assert!(is_restarted(&bench));
    assert_eq!(bench.lost, [device("bmc")]);
}

#[test]
fn a_silent_device_whose_old_session_answers_again_was_not_lost() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc").silent("bmc").silent("bmc").reads_off("bmc", 2);
    assert_eq!(bench.lost, []);
    assert!(bench.is_confirmed());
}

/// Nobody asked anything for so long that it ended: the store was away, or the process stopped.
#[test]
fn a_session_that_ended_by_itself_before_our_off_was_taken_is_lost() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench
        .reads("bmc", On)
        .off_fails("bmc")
        .reconnects("bmc")
        .reads("bmc", Off)
        .already("bmc")
        .reads_off("bmc", 60);
    assert!(is_restarted(&bench), "an Off that came without our doing");
    assert_eq!(bench.lost, [device("bmc")]);
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).reconnects("bmc").falls("bmc").reads_off("bmc", 30);
    assert!(bench.is_confirmed(), "seen on and fallen, it is believed after the long window");
}

#[test]
fn one_that_ended_by_itself_after_our_off_was_taken_asks_for_the_long_window() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc").reads_off("bmc", 1).reconnects("bmc").reads("bmc", Off).already("bmc");
    bench.reads_off("bmc", 2);
    assert!(bench.is_open() && bench.lost.is_empty());
    bench.reads_off("bmc", 30);
    assert!(bench.is_confirmed());
}

#[test]
fn one_that_fell_silent_and_then_ended_is_lost() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.reads("bmc", On).off("bmc").silent("bmc").reconnects("bmc").reads("bmc", Off).already("bmc");
    bench.reads_off("bmc", 60);
    assert!(is_restarted(&bench));
}

/// Its life is the proof of another node: another proof of that is no loss, whatever was silent in between.
#[test]
fn a_parent_has_no_session_that_could_be_lost() {
    let parent = DeviceSpec { class: crate::device::DeviceClass::Parent, ..host("bmc") };
    let mut bench = Bench::of(&[&[parent]]);
    bench.off("bmc").reads_off("bmc", 1).silent("bmc").restarts("bmc").reads("bmc", Off);
    bench.already("bmc").reads_off("bmc", 30);
    assert_eq!(bench.lost, []);
    assert!(bench.is_confirmed());
}

/// A Redfish service that does not say when it was reset, or an agent.
fn without_epochs() -> Bench {
    Bench::of(&[&[DeviceSpec { has_epochs: false, ..host("bmc") }]])
}

#[test]
fn a_device_without_epochs_that_was_silent_for_ten_seconds_may_have_restarted() {
    for silence in [s(10), s(20)] {
        let mut bench = without_epochs();
        bench.reads("bmc", On).off("bmc").silent("bmc").wait(silence).reads("bmc", Off);
        assert_eq!(bench.lost, [device("bmc")], "{silence:?}");
        bench.already("bmc").stays_off("bmc", s(60));
        assert!(is_restarted(&bench), "{silence:?}");
    }
}

/// As a Redfish service that says LastResetTime, before two checks agreed on it.
fn telling_unasked() -> Bench {
    let mut bench = without_epochs();
    bench.answers_in("bmc", Some(Bench::first_epoch()));
    bench
}

#[test]
fn a_loss_that_a_device_declared_without_epochs_tells_is_one() {
    let mut bench = telling_unasked();
    bench.reads("bmc", On).off("bmc").restarts("bmc").reads("bmc", Off);
    assert_eq!(bench.lost, [device("bmc")]);
    bench.already("bmc").stays_off("bmc", s(60));
    assert!(is_restarted(&bench));
    let mut bench = telling_unasked();
    bench.reads("bmc", On).off("bmc").restarts("bmc").reads("bmc", On).off("bmc").stays_off("bmc", s(18));
    bench.already("bmc").wait(s(1)).reads("bmc", Off);
    assert!(bench.is_confirmed(), "it read On after that, and fell");
}

#[test]
fn an_epoch_that_it_need_not_tell_makes_no_silence_shorter() {
    let mut bench = telling_unasked();
    bench.reads("bmc", On).off("bmc").silent("bmc").wait(s(10)).reads("bmc", Off);
    assert_eq!(bench.lost, [device("bmc")]);
}

#[test]
fn a_shorter_silence_of_it_is_none() {
    let mut bench = without_epochs();
    bench
        .reads("bmc", On)
        .off("bmc")
        .silent("bmc")
        .wait(s(4))
        .reads("bmc", On)
        .off("bmc")
        .stays_off("bmc", s(18));
    bench.already("bmc").wait(s(1)).reads("bmc", Off);
    assert!(bench.is_confirmed());
    assert_eq!(bench.lost, []);
}

#[test]
fn after_a_silence_it_counts_again_once_it_read_on_and_fell() {
    let mut bench = without_epochs();
    bench.reads("bmc", On).off("bmc").wait(s(20)).reads("bmc", On);
    assert_eq!(bench.lost, [device("bmc")]);
    // It is looked at once it has said anew whose machine it controls.
    bench.reads("bmc", On).off("bmc").stays_off("bmc", s(18)).already("bmc").wait(s(1)).reads("bmc", Off);
    assert!(bench.is_confirmed());
}

#[test]
fn an_off_that_ends_a_silence_does_not_count() {
    let mut bench = without_epochs();
    bench.reads("bmc", On).wait(s(20)).off("bmc");
    assert_eq!(bench.lost, [device("bmc")]);
    assert!(!bench.wants_off("bmc"), "first a look");
    bench.wait(s(1)).reads("bmc", Off);
    assert!(bench.wants_off("bmc"));
    bench.already("bmc").stays_off("bmc", s(60));
    assert!(is_restarted(&bench));
}

#[test]
fn the_time_of_a_call_that_it_answered_is_no_silence() {
    let slow = DeviceSpec { has_epochs: false, call: s(60), ..host("bmc") };
    let mut bench = Bench::of(&[&[slow]]);
    bench.reads("bmc", On);
    let asked_at = bench.now;
    bench.wait(s(40));
    let answered_at = bench.now;
    assert!(!bench.judge.off_taken(&device("bmc"), asked_at, answered_at, None, false));
    bench.stays_off("bmc", s(18)).already("bmc").wait(s(1)).reads("bmc", Off);
    assert!(bench.is_confirmed());
}

/// It is asked within its dwell, too: only so is it known that it was not silent.
#[test]
fn our_own_pause_is_no_silence_where_the_dwell_is_longer_than_one() {
    let slow = DeviceSpec { has_epochs: false, dwell: s(18), ..host("bmc") };
    let mut bench = Bench::of(&[&[slow]]);
    bench.reads("bmc", On).off("bmc");
    let began = bench.now;
    while !bench.is_confirmed() {
        let due = bench.judge.readings_due().first().map_or(bench.now, |(_, at)| *at);
        bench.wait(due.since(bench.now).max(s(1))).reads("bmc", Off);
        if bench.wants_off("bmc") {
            bench.already("bmc");
        }
        assert!(bench.lost.is_empty(), "after {:?}", bench.now.since(began));
    }
    assert!(bench.now.since(began) >= s(18), "its readings are a dwell apart");
}

#[test]
fn what_it_may_have_taken_begins_the_time_in_which_it_is_to_be_heard_and_a_question_does_not() {
    let mut bench = without_epochs();
    bench.unanswered("bmc").wait(s(60)).reads("bmc", Off);
    assert_eq!(bench.lost, [], "nothing was heard of it in this fence before");

    let mut bench = without_epochs();
    let asked_at = bench.now;
    bench.judge.may_have_taken(&device("bmc"), asked_at);
    bench.wait(s(10)).reads("bmc", Off);
    assert_eq!(bench.lost, [device("bmc")]);
}

#[test]
fn a_supply_a_parent_and_a_device_with_epochs_may_be_silent() {
    let spec = |class| DeviceSpec { class, has_epochs: false, ..host("bmc") };
    for spec in [spec(DeviceClass::Supply), spec(DeviceClass::Parent), host("bmc")] {
        let mut bench = Bench::of(&[std::slice::from_ref(&spec)]);
        bench.reads("bmc", On).off("bmc").wait(s(20)).reads("bmc", Off);
        assert_eq!(bench.lost, [], "{spec:?}");
    }
}

/// Which machine answers after a life that is over nobody knows: it is asked anew (S13).
#[test]
fn a_device_without_epochs_that_may_have_restarted_is_asked_anew_whose_machine_it_controls() {
    let mut bench = without_epochs();
    bench.reads("bmc", On).off("bmc").wait(s(20));
    let at = bench.now;
    bench.hears_of_whoever("bmc", On, at);
    assert!(!bench.judge.is_identified(&device("bmc")));
    assert!(!bench.wants_off("bmc"));
    bench.says_whose("bmc", IdentityMatch::Match, at).reads("bmc", On);
    assert!(bench.wants_off("bmc"));
}

/// What it said before it cannot take back after a silence.
#[test]
fn the_on_of_another_host_device_stands_although_that_one_may_have_restarted_since() {
    let other = DeviceSpec { has_epochs: false, ..host("other") };
    let mut bench = Bench::of(&[&[host("bmc")], &[other]]);
    bench.reads("bmc", On).off("bmc").reads_off("bmc", 1).reads("other", On).stays_off("bmc", s(12));
    bench.reads("other", Off).reads_off("bmc", 1);
    assert!(bench.is_open());
}

/// What a person saw, and what was proven with a hold, is not so any more once a host device says On.
#[test]
fn no_look_lets_an_off_be_believed_after_the_on_of_another_host_device() {
    for says_on in [false, true] {
        let mut bench = Bench::of(&[&[host("bmc")], &[host("other")]]);
        bench.reads("bmc", On).off("bmc").restarts("bmc").reads("bmc", Off);
        let trace = bench.judge.traces.get_mut(&device("bmc")).expect("a device of the fence");
        trace.seen_off = true;
        if says_on {
            bench.reads("other", On).reads("other", Off);
        }
        bench.already("bmc").stays_off("bmc", s(30)).already("bmc").stays_off("bmc", s(30));
        assert_eq!(is_restarted(&bench), says_on);
    }
}
