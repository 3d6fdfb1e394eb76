//! The service over a real Unix socket, an engine in paused time, and a simulated world.

mod brought_about;
mod fencing;
mod following;
mod half;
mod hidden;
mod history;
mod lab;
mod labelled;
mod limits;
mod meant;
mod nodes;
mod people;
mod places;
mod receipts;
mod refusals;
mod roles;
mod serving;
mod shown;
mod unfencing;
mod watching;
mod wishes;
