//! What callers ask, checked: all faults of a request are told at once.

pub(crate) mod fence;
pub(crate) mod fields;
pub(crate) mod motion;
pub(crate) mod pause;

pub(crate) use fence::fence;
pub(crate) use fields::{choice, page_size};
pub(crate) use motion::{MotionAsked, abandon, retry, stand_down, unfence};

#[cfg(test)]
mod tests;
