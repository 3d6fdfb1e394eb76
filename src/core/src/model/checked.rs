//! The model as the checker sees it: its states, its actions, what must hold always, and what must be seen to happen, so that the
//! model is not empty.

use std::sync::Arc;

use stateright::{Model, Property};

use super::actions::Action;
use super::properties::{
    ASTRAY, HELD_BACK, HOLD, KEPT, LIT, OFF_BACK, OWED, RECEIPT, REFUSED, RELEASE, STANDS, UNWANTED_ON,
    is_end,
};
use super::reachable::Graph;
use super::setup::Setup;
use super::state::State;
use super::{next, possible};
use crate::record::Phase;

/// The model as the checker sees it.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    pub(super) setup: Arc<Setup>,
    pub(super) graph: Option<Arc<Graph>>,
}

impl Model for Checked {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.setup.beginning()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if let Some(graph) = &self.graph {
            graph.state(state.digest, is_end(state));
        }
        possible::all(&self.setup, state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let next = next::next(&self.setup, state, &action);
        if let Some(graph) = &self.graph {
            graph.edge(state.digest, next.digest);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        all()
    }
}

impl std::hash::Hash for State {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.digest);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

fn wrong(state: &State, what: &str) -> bool {
    state.wrong == Some(what)
}

/// All of them. The rules and the model are one more check of each other by the last one.
pub(super) fn all() -> Vec<Property<Checked>> {
    vec![
        Property::always(RELEASE, |_, state: &State| !wrong(state, RELEASE)),
        Property::always(UNWANTED_ON, |_, state: &State| !wrong(state, UNWANTED_ON)),
        Property::always(STANDS, |_, state: &State| !wrong(state, STANDS)),
        Property::always(ASTRAY, |_, state: &State| !wrong(state, ASTRAY)),
        Property::always(LIT, |_, state: &State| !wrong(state, LIT)),
        Property::always(RECEIPT, |_, state: &State| !wrong(state, RECEIPT)),
        Property::always(HOLD, |_, state: &State| !wrong(state, HOLD)),
        Property::always(HELD_BACK, |_, state: &State| !wrong(state, HELD_BACK)),
        Property::always(OFF_BACK, |_, state: &State| !wrong(state, OFF_BACK)),
        Property::always(OWED, |_, state: &State| !wrong(state, OWED)),
        Property::always(REFUSED, |_, state: &State| !wrong(state, REFUSED)),
        Property::always(KEPT, |_, state: &State| !wrong(state, KEPT)),
        Property::sometimes("all volumes are let go", |_, state: &State| !state.world.owned.contains(&true)),
        Property::sometimes("a node that was fenced is back with its volumes", is_back),
    ]
}

fn is_back(checked: &Checked, state: &State) -> bool {
    let record = &state.stored.record;
    record.phase == Phase::Normal
        && record.generation.0 >= 2
        && state.world.power.is_some()
        && state.world.owned == checked.setup.volumes()
}
