//! The driver against BMCs that others wrote, as processes of the test, and over networks that lose, double and forge.
//!
//! Needs `ipmi_sim` (openipmi), a C compiler with `libopenipmi-dev`, and a Python with pyghmi; says so where one is missing.

#[path = "../../../../tests/src/peers/address.rs"]
mod address;
mod bad_network;
mod bench;
mod bmc;
mod closing;
mod ipmi_sim;
mod network;
mod odd_answers;
mod pyghmi;
mod slow;
mod suite_17;
#[path = "../../../../tests/src/peers/window.rs"]
mod window;
