//! Where the rules meet I/O, and the only such place.
//!
//! **Purpose.** One task a node walks the line: intent, hold, own off, evidence, release, watch, unfence.
//! **Non-goals.** No rule of its own: `picket_core::machine` and the judge decide what may happen.
//! **Boundary.** The gRPC server sees [`Engine`], [`NodeView`] and [`EngineError`]. Drivers and releasers
//! see nothing of it.
//!
//! # Invariants
//!
//! - Nothing is sent before it is stored (S5). Shown by
//!   `everything_that_is_sent_is_stored_with_its_session`,
//!   `killed_at_every_point_it_comes_to_the_same_end`.
//! - Clock, randomness, store and transport are passed in, and nothing leaves the runtime's thread.
//! - Every `select!` is `biased` and takes answers before callers, so that a full mailbox leaves no answer
//!   unread. Shown by `callers_who_never_pause_keep_no_answer_of_a_device_unread`.
//! - Every wait has a deadline and a next step (S16). Shown by `every_way_out_leads_where_it_says`.

mod bound_keys;
pub mod clock;
mod engine;
mod error;
mod hooks;
mod logins;
mod looks;
mod node;
mod office;
mod own;
mod paces;
mod parents;
mod parts;
mod plan;
mod readiness;
mod receipts;
mod request;
mod spec;
mod successors;
mod twins;
mod units;
mod view;
mod work;

pub use engine::{Change, ChangeError, Changed, Engine, Part};
pub use error::{Absent, EngineError, Stale, TakenKey};
pub use hooks::{Gate, Hooks, NoHooks, gated};
pub use logins::{LoginTurn, Logins, PATIENCE, Rank};
pub use office::queue::{Queued, WaitState, Waits};
pub use office::{OfficeNumbers, Resumed};
pub use own::Own;
pub use paces::{Backoff, Paces};
pub use parents::{CLOUD_LABEL, LABEL as PARENT_LABEL, ParentDriver, ParentSettings, Parents, called};
pub use parts::{NodePlan, Parts, PlannedRelease};
pub use picket_driver::ErrorKind;
pub use plan::{Plan, PlanAction, PlanStep, Planned};
pub use readiness::{Problem, Readiness, Trouble, problems, readiness};
pub use receipts::{ReceiptCall, Receipted, Receipts, Verified};
pub use request::{Acting, Admission, Asides, Ask, FenceCall, LetIn, Taken, Turn, Until};
pub use spec::NodeSpec;
pub use twins::Twins;
pub use units::{Unit, UnitLimits};
pub use view::{Checked, DeviceLive, LIVENESS_SOURCE, Live, NodeView, Wait, whose_release};
