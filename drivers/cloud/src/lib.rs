//! What the drivers of clouds share.
//!
//! **Purpose.** One account serves thousands of devices: what guards its limits stands here once for all clouds.
//! **Non-goals.** No cloud is known here, neither its words nor its requests.

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
pub use device::{CALL, EPOCH, Seen, traits};
pub use failure::{Unanswered, one_line};
pub use gather::gather;
pub use quiesce::Pending;
pub use token::{CLOCKS, Token};
pub use tokens::Tokens;
pub use unclear::{Sending, Unclear};
