//! What the drivers of clouds share.
//!
//! **Purpose.** Thousands of devices share one account of a cloud. What is the same for each cloud stands
//! here once: the account, its token, commands that a token bounds, the limits of requests, and what is
//! struck out of answers.
//! **Non-goals.** No cloud is known here, neither its words nor its requests. What a refusal means for
//! power is each driver's matter.
//!
//! # Invariants
//!
//! - A command goes once, under a permit that is asked for last, and its answer is heard (S6, S8, S10).
//! - A token bears a command only where its life is over within the ledger's time. It was there when the
//!   store said its last word. Shown by
//!   `a_token_bears_no_command_that_would_be_taken_later_than_its_bound`.
//! - What is secret is shown nowhere (S18). Shown by `a_secret_is_struck_out_however_it_is_written`.

mod accounts;
pub mod bucket;
mod clients;
mod command;
mod device;
mod failure;
#[cfg(any(test, feature = "fakes"))]
pub mod fakes;
mod gather;
mod quiesce;
pub mod redact;
mod token;
mod tokens;
mod unclear;

pub use accounts::Accounts;
pub use clients::Clients;
pub use command::{Bound, carry};
pub use device::{CALL, EPOCH, Findings, traits};
pub use failure::{Unanswered, one_line};
pub use gather::gather;
pub use quiesce::Pending;
pub use token::{CLOCKS, Token};
pub use tokens::Tokens;
pub use unclear::{Sending, Unclear};
