//! S16: an orphan, to which nothing is sent, is stuck nowhere: with each of its releases given up by name it is retired.

use picket_core::event::Event;
use picket_core::record::Phase;
use proptest::prelude::*;

use crate::cases;
use crate::support::person;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn orphans_can_be_retired(moves in moves()) {
        let mut player = walk(&moves, |_, _| {}).player;
        if matches!(player.record().phase, Phase::Normal | Phase::Retired) {
            return Ok(());
        }
        for open in player.open_fence().releases.clone() {
            // Refused where it is complete already.
            let given_up = Event::Abandon { release: open.id, person: person(), orphan: true };
            let _ = player.try_apply(given_up);
        }
        // With the last release a hold may go that was to last until then: the node is an orphan still.
        player.apply(Event::Retire { person: person(), settings: None, left: Vec::new() });
        assert_eq!(player.phase(), "retired");
    }
}
