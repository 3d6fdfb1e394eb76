//! The driver against a service of our own, with faults on demand, and against OpenStack's sushy-emulator.

mod certificates;
mod conformance;
mod elsewhere;
mod fake;
mod faults;
mod holds;
mod late_ends;
mod law;
mod lives;
mod machines;
mod odd_boards;
mod ordinary;
mod places;
mod redirects;
mod remarks;
mod slow_boards;
mod starting;
mod subject;
mod succession;
mod unclear;
