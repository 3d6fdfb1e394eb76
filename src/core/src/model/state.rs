//! What is true and what each gateway knows, at one moment.

use std::sync::Arc;

use super::gateways::Gateway;
use super::world::{Budget, GATEWAYS, World};
use crate::ids::Term;
use crate::store::Stored;

/// Everything, at one moment.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) tick: u64,
    pub(super) stored: Arc<Stored>,
    pub(super) term: Term,
    /// Who holds the election's lease, and until when.
    pub(super) elected: Option<(usize, u64)>,
    pub(super) gateways: [Gateway; GATEWAYS],
    pub(super) world: World,
    pub(super) left: Budget,
    /// The property that was violated on the way here; from here nothing goes on.
    pub(super) wrong: Option<&'static str>,
    /// What has been seen on the way here; not a part of the state.
    pub(super) digest: u64,
}
