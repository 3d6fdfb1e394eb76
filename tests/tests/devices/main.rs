//! Devices before the software that others wrote for them: one conformance suite over every driver, the fence agents that Debian
//! ships, and the simulated fleet before other people's clients.

mod agents;
mod conformance;
mod fleet;
