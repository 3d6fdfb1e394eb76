//! A refused event changes nothing, and the same event on the same record is decided the same way.

use futures::executor::block_on;
use picket_core::store::Store;
use proptest::prelude::*;

use crate::cases;
use crate::support::node;
use crate::walk::{moves, walk};

proptest! {
    #![proptest_config(cases(100))]
    #[test]
    fn a_refusal_changes_nothing(moves in moves()) {
        walk(&moves, |taken, walk| {
            let stored = block_on(walk.player.store.load(&node())).unwrap();
            if taken.result.is_err() {
                assert_eq!(taken.after, taken.before);
            }
            assert!(stored.is_none_or(|stored| stored == taken.after));
        });
    }

    #[test]
    fn the_same_walk_comes_to_the_same_end(moves in moves()) {
        let one = walk(&moves, |_, _| {});
        let other = walk(&moves, |_, _| {});
        assert_eq!(one.player.stored, other.player.stored);
    }
}
