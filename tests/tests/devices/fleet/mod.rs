//! The simulated fleet (`drivers/fleet`) before other people's clients: what they take for a BMC is good enough to rehearse
//! with, and to measure against. The truth is asked of the world behind each BMC.

mod faults;
mod ipmi;
mod powerman;
mod redfish;
mod rehearsal;
mod scene;
