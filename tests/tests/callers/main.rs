//! Who asks the gateway: certificates, roles and limits; what is told of bad input; Pacemaker.

mod bad_input;
mod doors;
mod stonith;
