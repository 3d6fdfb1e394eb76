//! Callers of the gateway: certificates, roles and limits; the messages about bad input; Pacemaker.

mod bad_input;
mod doors;
mod stonith;
