//! What the engine is made of. Everything is passed in.

pub(crate) mod node_plan;

use std::sync::Arc;

pub use node_plan::{NodePlan, PlannedRelease};
use picket_audit::Audit;
use picket_core::budget::Budget;
use picket_core::election::Election;
use picket_core::roles::Roles;
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_core::time::Clock;
use picket_driver::Random;
use picket_metrics::Metrics;

use crate::hooks::Hooks;
use crate::logins::Logins;
use crate::own::Own;
use crate::parents::Parents;
use crate::receipts::Receipts;
use crate::twins::Twins;
use crate::units::Unit;

/// Everything the engine works with.
#[derive(Clone)]
pub struct Parts {
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Random,
    /// The store.
    pub store: Arc<dyn Store>,
    /// The election.
    pub election: Arc<dyn Election>,
    /// Named points for tests.
    pub hooks: Arc<dyn Hooks>,
    /// What is told of everything that was asked, decided and done.
    pub audit: Audit,
    /// What signs receipts.
    pub receipts: Arc<Receipts>,
    /// What counts and measures.
    pub metrics: Metrics,
    /// The numbers of the rules.
    pub rules: Rules,
    /// How much may be fenced.
    pub budget: Budget,
    /// Who may what, of those whose requests wait.
    pub roles: Roles,
    /// The fleet.
    pub nodes: Vec<NodePlan>,
    /// On which node this gateway stands, where its settings do not say.
    pub own: Arc<Own>,
    /// Identities that more than one node claims.
    pub twins: Arc<Twins>,
    /// The way from nodes to those on which they run.
    pub parents: Arc<Parents>,
    /// Whether its devices switch no real machine, as callers are told (S1).
    pub simulated: bool,
    /// Whether identities are learned by a check after the start.
    pub check_at_start: bool,
    /// How many devices are logged in to side by side.
    pub logins: Logins,
    /// How many programs of devices run side by side.
    pub programs: Arc<Unit>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("store", &self.store)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
