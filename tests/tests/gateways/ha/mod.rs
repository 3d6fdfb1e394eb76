//! Three gateways, a real etcd, a real BMC: whoever leads may die, freeze, or be told to stop in the middle of a fence.
//!
//! The observer is the webhook: with each release it looks at the BMC's own truth.

mod duo;
mod going_on;
mod members;
mod moving;
mod programs;
mod settings;
mod succession;
mod trio;
