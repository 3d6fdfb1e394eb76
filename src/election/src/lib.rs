//! Who leads.
//!
//! **Purpose.** Hold the election for [`picket_core::election::lead`], which makes the permit.
//! **Non-goals.** No permit is made here, and none is renewed by force: what ended stays ended.
//!
//! # Invariants
//!
//! - A term is stored before it is answered, and is greater than every one before, also after a restart.
//!   Shown by `everything_survives_closing_and_the_terms_grow`.

mod single;

pub use single::Single;
