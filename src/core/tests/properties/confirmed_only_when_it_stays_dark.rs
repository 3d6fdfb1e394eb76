//! The promise itself: whenever the judge confirms, the node is off and stays off. Over random stories of foreign power
//! cycles, BMCs that restart and lie, late ons of ours, offs that are ignored or lost, devices that contradict each other,
//! and supplies with a hold-up; but for what "What remains" names.

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::cases;
use crate::truth::{Fate, Levels, Luck, Restart, Story, live};

fn luck() -> impl Strategy<Value = Vec<Luck>> {
    let fate = prop_oneof![
        16 => Just(Fate::Fine),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Unknown),
        1 => Just(Fate::Reconnects),
    ];
    let trip = || prop_oneof![4 => 1..50u64, 1 => 50..2_400u64];
    let one = (trip(), trip(), fate).prop_map(|(there, back, fate)| Luck { there, back, fate });
    prop::collection::vec(one, 1..40)
}

fn restarts() -> impl Strategy<Value = Vec<Restart>> {
    let one = (0..60_000u64, 0..20_000u64, prop_oneof![Just(0u64), 0..60_000u64, Just(1_000_000)])
        .prop_map(|(at, silent, lies)| Restart { at, silent, lies });
    prop::collection::vec(one, 0..3).prop_map(|mut restarts| {
        restarts.sort_by_key(|restart| restart.at);
        restarts
    })
}

pub fn story() -> impl Strategy<Value = Story> {
    let levels = prop_oneof![
        3 => Just(Levels::Alone),
        1 => Just(Levels::Beside),
        1 => Just(Levels::After),
        2 => Just(Levels::Supplies),
    ];
    // Below the longest cycle of every device, which is 15 s.
    let cycle = prop::option::of(0..14_990u64);
    let late_ons = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(0..20_000u64, 1..4)];
    let fall = prop_oneof![3 => 0..8_000u64, 1 => 8_000..60_000u64];
    let ignored = prop_oneof![3 => Just(0u8), 1 => 1..4u8];
    let liar = prop::option::of(0..60_000u64);
    let flags = (any::<bool>(), prop::bool::weighted(0.2), prop::bool::weighted(0.2), any::<bool>());
    (flags, cycle, fall, ignored, restarts(), late_ons, liar, levels, 0..9_990u64, luck()).prop_map(
        |(
            (on, plain, resumed, other),
            cycle,
            fall,
            ignored,
            restarts,
            late_ons,
            liar,
            levels,
            hold_up,
            luck,
        )| {
            let with_witness = matches!(levels, Levels::Beside | Levels::After);
            Story {
                on,
                cycle,
                fall,
                ignored,
                // A device without epochs cannot show that it restarted: its lies are a single device's.
                restarts: if plain && !with_witness { Vec::new() } else { restarts },
                other_restarts: other && with_witness && liar.is_none(),
                late_ons,
                liar: liar.filter(|_| with_witness),
                levels,
                plain,
                resumed,
                hold_up,
                luck,
            }
        },
    )
}

fn tell(story: &Story) -> bool {
    let ending = live(story);
    if let Some(fault) = ending.fault {
        panic!("confirmed at {:?}, and {fault}\n{}", ending.confirmed_at, ending.said);
    }
    ending.confirmed_at.is_some()
}

proptest! {
    #![proptest_config(cases(300))]
    #[test]
    fn confirmed_only_when_it_stays_dark(story in story()) {
        tell(&story);
    }
}

/// The stories are worth their name: many of them are confirmed.
#[test]
fn many_stories_are_confirmed() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let confirmed = (0..100).filter(|_| tell(&story().new_tree(&mut runner).unwrap().current())).count();
    assert!(confirmed >= 25, "{confirmed} of 100");
}
