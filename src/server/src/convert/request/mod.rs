//! What callers ask, checked: all faults of a request are told at once.

pub(crate) mod drill;
pub(crate) mod fence;
pub(crate) mod fields;
pub(crate) mod motion;
pub(crate) mod operator_request;
pub(crate) mod pause;

pub(crate) use drill::{DrillParameters, DrillTarget, drill};
pub(crate) use fence::fence;
pub(crate) use fields::{choice, device, page_size};
pub(crate) use motion::{MotionParameters, abandon, retry, stand_down, unfence};
pub(crate) use operator_request::{accept_identity, attest, drop_hold, hold, retire};

#[cfg(test)]
mod tests;
