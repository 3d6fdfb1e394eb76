//! What a move's numbers choose: names and requests that exist, or nearly do.

use picket_core::device::MaxInFlight;
use picket_core::event::{FenceRequest, Survey};
use picket_core::outcome::Reason;
use picket_core::record::{Part, ReleaseStage, Then};

use crate::support::*;

pub const DEVICES: [&str; 5] = ["bmc", "agent", "a", "b", "nobody"];
pub const RELEASES: [&str; 5] = ["storage", "detach", "nobody", "detach/v0", "detach/v1"];
pub const HOLDERS: [&str; 4] = ["ops", "scheduler", "nobody", "restored"];
pub const REASONS: [Reason; 4] =
    [Reason::LevelsSpent, Reason::Deadline, Reason::ReleaseDeadline, Reason::UnboundedEffect];
pub const STAGES: [ReleaseStage; 5] = [
    ReleaseStage::Complete,
    ReleaseStage::Accepted,
    ReleaseStage::Pending,
    ReleaseStage::Requested,
    ReleaseStage::Abandoned,
];

pub fn pick<T: Copy>(of: &[T], number: u8) -> T {
    of[usize::from(number) % of.len()]
}

/// Which of two volumes are attached, of whom nobody may say more than that it cannot be told.
pub fn survey(on_ground: bool, number: u8) -> Result<Survey, String> {
    let attached = [0, 1].into_iter().filter(|bit| number >> bit & 1 == 1);
    let part = |bit| Part {
        volume: format!("v{bit}"),
        device: if number >= 4 { "/dev/vdx".to_owned() } else { String::new() },
        name: String::new(),
    };
    let parts = attached.map(part).collect();
    let found = Survey { parts, stays: Vec::new(), on_ground, max_in_flight: Some(s(60)) };
    if number == 7 { Err("for the test".to_owned()) } else { Ok(found) }
}

pub fn then(number: u8) -> Then {
    if number.is_multiple_of(2) { Then::StayOff } else { Then::PowerOn }
}

/// One level, a second one of supplies, a second host device; one of them without a bound.
pub fn fence_request(id: u8, a: u8, b: u8) -> FenceRequest {
    let (pdus, bmc) = ([supply("a"), supply("b")], [host("bmc")]);
    let mut agent = host("agent");
    agent.max_in_flight = MaxInFlight { off: None, on: None };
    let both = [host("bmc"), agent];
    let levels: [&[&[_]]; 3] = [&[&bmc], &[&bmc, &pdus], &[&both, &pdus]];
    let releases: [&[&str]; 3] = [&[], &["detach"], &["storage", "detach"]];
    let mut request = request(id, pick(&levels, a), pick(&releases, b));
    request.holder = holder("ops", then(b / 3));
    if let Some(release) = request.releases.last_mut().filter(|_| a == 7) {
        release.max_in_flight = None;
    }
    // Sometimes it sets something up.
    if let Some(release) = request.releases.last_mut().filter(|_| a % 4 == 2) {
        release.lingers = Some(s(30));
    }
    request
}
