//! Fence agents of ClusterLabs as devices: what Debian ships, run by the real daemon, against peers that others wrote.

mod breach;
mod ends;
mod levels;
mod listed;
mod many;
mod pdu;
mod power;
mod redfish;
mod refused;
mod scene;
mod takeover;
