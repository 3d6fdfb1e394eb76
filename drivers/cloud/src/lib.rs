//! What the drivers of clouds share.
//!
//! **Purpose.** One account serves thousands of devices: what guards its limits stands here once for all clouds.
//! **Non-goals.** No cloud is known here, neither its words nor its requests.

mod accounts;
pub mod bucket;
mod command;
mod failure;
pub mod redact;
mod token;
mod tokens;

pub use accounts::Accounts;
pub use command::{Bound, carry};
pub use failure::{Unanswered, one_line};
pub use token::{CLOCKS, Token};
pub use tokens::Tokens;
