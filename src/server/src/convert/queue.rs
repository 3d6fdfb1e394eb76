//! Requests that wait in the queue.

use picket_core::budget::{Bar, LimitKind};
use picket_core::time::WallTime;
use picket_engine::Queued;
use picket_proto::v1;

use super::time::timestamp;

/// What a request waits for, as its caller sees it.
pub(crate) fn wait(bar: &Bar, expires_at: WallTime) -> v1::Wait {
    v1::Wait {
        what: what(bar).to_owned(),
        whose: bar.whose.clone(),
        until: Some(timestamp(expires_at)),
        otherwise: "blocked (expired)".to_owned(),
    }
}

/// The same, as whoever looks at the node sees it: with its number, and who asked.
pub(crate) fn wait_of_node(queued: &Queued) -> v1::Wait {
    let Queued { ticket, holder, by, expires_at, bar } = queued;
    let whom = if holder == by { String::new() } else { format!(" for {holder}") };
    let what = format!("{}, in the queue as number {ticket}, asked by {by}{whom}", what(bar));
    v1::Wait { what, ..wait(bar, *expires_at) }
}

/// What is waited for, in words.
fn what(bar: &Bar) -> &'static str {
    match bar.kind {
        LimitKind::Pause => "the end of a pause",
        LimitKind::Brake => "the brake to be let go",
        LimitKind::CoolDown => "the cool-down to pass",
        LimitKind::AtOnce => "one of the fences at once",
        LimitKind::PerWindow => "one of the fences in the window",
        LimitKind::MinNotFenced => "a node that comes back",
        LimitKind::Quorum => "a member of the store that comes back",
        LimitKind::Queue => "its turn",
    }
}
