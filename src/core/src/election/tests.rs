//! S6: a permit ends before its lease does, by a jump between the clocks, and for good.

use super::{Digests, Lease};
use crate::support::{Player, boot, ms, s};

#[test]
fn a_lease_ends_at_its_end_and_is_renewed_before() {
    let lease = Lease::until(boot(5_000));
    assert!(!lease.is_over(boot(4_999)));
    assert!(lease.is_over(boot(5_000)));
    lease.renew(boot(8_000));
    assert!(!lease.is_over(boot(7_999)) && lease.is_over(boot(8_000)));
    lease.end();
    lease.renew(boot(60_000));
    assert!(lease.is_over(boot(8_000)), "over for good");
}

#[test]
fn what_is_left_of_a_lease_is_told_until_it_is_over() {
    let lease = Lease::until(boot(5_000));
    assert_eq!(lease.left(boot(3_500)), Some(ms(1_500)));
    assert_eq!(lease.left(boot(5_000)), Some(ms(0)));
    lease.renew(boot(9_000));
    assert_eq!(lease.left(boot(5_000)), Some(s(4)));
    lease.end();
    assert_eq!(lease.left(boot(5_000)), Some(ms(0)), "over for good");
    assert_eq!(Lease::endless().left(boot(1)), None);
}

#[test]
fn settings_differ_only_where_both_are_known() {
    let digests = |own: &str, led_by: &str| Digests {
        own: own.to_owned(),
        led_by: led_by.to_owned(),
        ..Digests::default()
    };
    for (own, led_by, differ) in [("a", "a", false), ("a", "b", true), ("", "b", false), ("a", "", false)] {
        assert_eq!(digests(own, led_by).differ(), differ, "{own:?} {led_by:?}");
    }
}

#[test]
fn an_endless_lease_ends_when_it_is_ended() {
    let lease = Lease::endless();
    assert!(!lease.is_over(boot(u64::MAX / 2)));
    lease.end();
    assert!(lease.is_over(boot(0)));
}

#[test]
fn a_jump_of_the_wall_clock_ends_leadership_for_good() {
    let player = Player::new();
    player.clock.advance(s(3_600));
    assert!(player.leadership.check().is_ok(), "both clocks went on");
    player.clock.jump(s(1));
    assert!(player.leadership.check().is_ok(), "a leap second");
    player.clock.jump(ms(1));
    let ended = player.leadership.check().expect_err("it jumped");
    assert_eq!(
        (ended.term, ended.why),
        (player.leadership.term(), "the wall clock jumped against the boot-time clock")
    );
    player.clock.advance(s(1));
    assert!(player.leadership.check().is_err());
}

#[test]
fn what_it_writes_compares_its_term_and_the_store_s_life() {
    let mut player = Player::new();
    let first = player.leadership.guard();
    player.succeeds();
    let second = player.leadership.guard();
    assert_eq!(first.incarnation, second.incarnation);
    assert!(second.term > first.term && second.term == player.leadership.term());
}
