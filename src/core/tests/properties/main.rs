//! Properties of the rules over random histories, one a file.
//!
//! CI runs few cases of each. `PICKET_SOAK` multiplies them: by its number, or by 50 where it is 1 or no number.
//! A failure prints its smallest history and a `cc` line; put into `proptest-regressions`, that replays it.

// A fixture that cannot be made ends its test.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod locks;
mod oracle;
mod truth;
mod walk;

mod a_hold_keeps_the_node_off;
mod confirmed_only_as_the_law_says;
mod confirmed_only_when_it_stays_dark;
mod confirms_in_the_end;
mod effects_stand_in_the_ledger;
mod found_is_never_overwritten;
mod normal_leaves_nothing_undone;
mod numbers_only_grow;
mod on_only_through_its_gate;
mod orphans_can_be_retired;
mod parts_are_over_before_their_release;
mod proofs_are_present_ones;
mod receipts_bar_the_on;
mod records_come_back_from_json;
mod refusals_change_nothing;
mod releases_only_when_fenced;
mod some_way_leads_back;
mod what_is_restored_stands_on_nothing;
mod what_is_retired_stays_so;
mod what_stands_bars_the_on;
mod wiring_is_verified_by_drills_alone;

use proptest::prelude::ProptestConfig;

/// So many cases, or many times as many for a soak.
fn cases(number: u32) -> ProptestConfig {
    let times = match std::env::var("PICKET_SOAK") {
        Ok(times) => times.parse().ok().filter(|times| *times > 1).unwrap_or(50),
        Err(_) => 1,
    };
    ProptestConfig { cases: number * times, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}
