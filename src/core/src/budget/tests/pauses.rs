//! Pauses: whom they cover, and that they end.

use super::*;
use crate::budget::pause::{Pause, PauseScope, Pauses};
use crate::outcome::Reason;
use crate::support::s;
use crate::time::WallTime;

#[test]
fn pauses_cover_what_they_say_and_end_by_themselves() {
    let pause = |scope| Pause {
        scope,
        reason: "a new switch".to_owned(),
        by: "ada".to_owned(),
        since: WallTime::from_millis(1_000),
        expires_at: WallTime::from_millis(61_000),
    };
    let mut pauses = Pauses::default();
    pauses.put(pause(PauseScope::Group("rack=r1".to_owned())), boot(60_000));
    pauses.put(pause(PauseScope::Node(node(3))), boot(90_000));
    let groups = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let bar = pauses.bar(&node(1), &groups(&["rack=r1"]), boot(0)).unwrap();
    assert_eq!((bar.reason(), bar.retry_after), (Reason::Paused, Some(s(60))));
    assert!(bar.text.contains("group rack=r1 is paused by ada"), "{}", bar.text);
    assert_eq!(pauses.bar(&node(1), &groups(&["rack=r2"]), boot(0)), None);
    assert_eq!(pauses.bar(&node(3), &groups(&["rack=r1"]), boot(0)).unwrap().retry_after, Some(s(90)));
    assert_eq!(pauses.bar(&node(1), &groups(&["rack=r1"]), boot(60_000)), None);
    assert_eq!(pauses.take_ended(boot(60_000)), [PauseScope::Group("rack=r1".to_owned())]);
    assert!(pauses.end(&PauseScope::Node(node(3)), boot(0)) && !pauses.end(&PauseScope::Everything, boot(0)));
}

#[test]
fn a_clock_that_was_set_back_makes_no_pause_longer() {
    let pause = Pause {
        scope: PauseScope::Everything,
        reason: String::new(),
        by: String::new(),
        since: WallTime::from_millis(100_000),
        expires_at: WallTime::from_millis(160_000),
    };
    for (now, left) in [(0, 60), (100_000, 60), (130_000, 30), (170_000, 0)] {
        assert_eq!(pause.left(WallTime::from_millis(now)), s(left));
    }
}
