//! The engine in paused time over a simulated world: scenarios of the law, seen by an observer that knows the truth.

mod chaos;
mod crash;
mod devices;
mod distribution;
mod lab;
mod observer;
mod operation;
mod points;
mod releases;
mod requests;
mod setup;
mod weather;
