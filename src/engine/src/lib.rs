//! Where the rules meet I/O, and the only such place.
//!
//! **Purpose.** One task a node walks the line: intent, hold, own off, evidence, release, watch, unfence.
//! **Non-goals.** No rule of its own: what may happen is decided by `picket_core::machine` and the judge.
//! **Invariants.** Nothing is sent before it is stored. Clock, randomness, store and transport are passed in; `select!`
//! is `biased`, and takes answers before callers: a mailbox that never empties keeps none of them unread; nothing leaves the
//! runtime's thread. Every wait has a deadline and a next step (S16).
//! **Boundary.** The gRPC server sees [`Engine`], [`NodeView`] and [`EngineError`]; drivers and releasers see nothing of it.

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
