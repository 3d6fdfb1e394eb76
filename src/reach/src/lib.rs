//! Asking what the operator named: a program, or a place on the web, within bounds.
//!
//! **Purpose.** What releases and liveness sources share: reading their tables, running a [`program`],
//! asking a place on the [`web`], saying which [`proxy`] is not asked.
//! **Non-goals.** What an answer means is the asker's matter, and so is asking again. What a program asked
//! of another daemon is not below the keeper: `max_life` speaks of that.
//!
//! # Invariants
//!
//! - Everything ends in time, and what is kept of an answer is bounded.
//! - A program ends with all that it started: with its call, with the task that asked, and with the
//!   gateway, also where the gateway stands still (S8). The `keeper` ensures that: a process between the
//!   two, and the subreaper of all below it. Shown by `at_the_end_of_its_time_all_of_it_dies`,
//!   `when_its_task_ends_all_of_it_dies`,
//!   `where_the_gateway_stands_still_all_of_it_dies_at_the_end_of_its_time`,
//!   `when_the_lifeline_breaks_all_of_it_dies`.
//! - A program runs with nothing of ours in its environment. Shown by
//!   `the_program_gets_the_document_its_arguments_and_little_else`.
//! - On the web nothing follows a redirect, goes through a proxy or is repeated. Whom to believe is never
//!   switched off.
//! - No secret is in an error or a debug print (S18).

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
