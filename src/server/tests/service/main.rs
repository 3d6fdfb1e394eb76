//! The service over a real Unix socket, an engine in paused time, and a simulated world.

mod fencing;
mod following;
mod history;
mod lab;
mod nodes;
mod people;
mod receipts;
mod refusals;
mod roles;
mod serving;
mod unfencing;
mod watching;
