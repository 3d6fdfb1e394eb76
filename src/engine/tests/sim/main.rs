//! The engine in paused time over a simulated world: scenarios of the law, seen by an observer that knows the truth.

mod audit;
mod away;
mod chaos;
mod checks;
mod crash;
mod devices;
mod distribution;
mod fleet;
mod kept_off;
mod lab;
mod liveness;
mod observer;
mod operation;
mod patience;
mod points;
mod power;
mod receipts;
mod releases;
mod reload;
mod requests;
mod sessions;
mod setup;
mod silence;
mod stopped;
mod stopping;
mod weather;
