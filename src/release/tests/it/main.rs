//! Releasers before a receiver of releases.

mod permit;
mod secrets;
