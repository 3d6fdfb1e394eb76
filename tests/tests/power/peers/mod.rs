//! The peers themselves, looked at with other people's clients: a test that relies on a peer that lies by mistake shows nothing.

mod heartbeat;
mod hold;
mod hosts;
mod network;
mod power;
mod receiver;
