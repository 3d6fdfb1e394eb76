//! A network between a driver and its devices, for tests that want one.

use std::time::Duration;

use async_trait::async_trait;

use crate::wire::{Answer, Request, SessionId};

/// One copy of a request on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// To which device.
    pub device: String,
    /// In which session.
    pub session: Option<SessionId>,
    /// What is asked.
    pub request: Request,
}

/// Carries packets between one gateway and the devices: late, twice, or never.
#[async_trait]
pub trait Link: Send + Sync + std::fmt::Debug {
    /// Carries one copy, and brings the answer; [`Silence`](crate::Trouble::Silence) where none came within about `patience`.
    /// It is called in the moment in which the copy is sent: whoever was allowed to send was so just now.
    async fn carry(&self, packet: Packet, patience: Duration) -> Answer;
}
