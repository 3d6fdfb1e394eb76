//! Asking what the operator named: a program, or a place on the web, within bounds.
//!
//! **Purpose.** What releases and liveness sources share: reading their tables, running a [`program`], asking a place on
//! the [`web`], saying which [`proxy`] is not asked.
//! **Non-goals.** What an answer means is the asker's matter, and so is asking again.
//! **Invariants.** Everything ends in time, and what is kept of an answer is bounded. A program runs with nothing of ours in
//! its environment; a `keeper` outside of the gateway ends it with all that it started. On the web nothing follows a redirect, goes
//! through a proxy or is repeated; whom to believe is never switched off. No secret is in an error or a debug print (S18).

pub mod address;
mod keeper;
mod last_word;
pub mod process;
pub mod program;
pub mod proxy;
pub mod settings;
mod text;
pub mod token;
pub mod web;

pub use last_word::LastWord;
pub use settings::{SettingFault, Settings, unmade};
pub use text::{KEPT, excerpt};
