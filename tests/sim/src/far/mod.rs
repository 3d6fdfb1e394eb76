//! The far sides that survive every gateway: the store with its election, and what releases volumes.

mod client;
mod elector;
mod quorum;
mod releaser;

pub(crate) use client::{Client, REQUEST};
pub(crate) use elector::Elector;
pub(crate) use quorum::{LIFE, Quorum};
pub(crate) use releaser::FarSide;
