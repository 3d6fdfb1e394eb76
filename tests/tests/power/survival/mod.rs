//! What a fence survives: delays, kills and stops of the gateway, at any moment; and that no heartbeat comes after the
//! proof.
//!
//! `PICKET_SOAK=1` runs more of each.

mod ends;
mod heartbeat;
mod killed;
mod scene;
mod stopped;
