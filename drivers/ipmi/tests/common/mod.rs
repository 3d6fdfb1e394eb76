//! What the tests share: BMCs that others wrote, as processes; a network that loses and doubles; orders.

#![allow(dead_code)]

pub mod bench;
pub mod bmc;
pub mod network;
pub mod pyghmi;
pub mod subject;
