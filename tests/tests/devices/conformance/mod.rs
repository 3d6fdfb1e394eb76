//! One suite over all drivers, from one place: each driver before peers that we did not write, or that other people's clients
//! take for what they pretend to be (`tests/tests/devices/fleet`).
//!
//! What a driver owes is in `drivers/api/src/conformance`; what that suite sees is shown by drivers that are wrong on purpose
//! (`drivers/sim/tests/it`), where the driver sim is held to it too. The drivers' own tests run it over services of
//! their own that can be wrong in further ways.

mod bmc;
mod ec2;
mod gce;
mod nowhere;
mod over_https;
mod over_udp;
mod pdu;
mod scene;
mod sushy;
mod table;
