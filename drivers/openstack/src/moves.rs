//! Whether a server runs on the host that Nova has for it, by what was done to it (`os-instance-actions`,
//! which a tenant may read, too).
//!
//! A cold migration starts a guest only where Nova already has the server, and leaves no copy. Live
//! migrations are in `live.rs`, and what was under way when the server was deleted is in `deleted.rs`.
//!
//! # Invariants
//!
//! - The server's own host says Off of its own guest alone. After an evacuation that is not known to have
//!   ended well the guest may run at the destination. No Off of the source counts then (S1, S13). Shown by
//!   `a_stop_proves_nothing_after_an_evacuation_that_is_not_known_to_have_ended_well`.
//! - Another move that ends well does not end that guest, which is a copy from then on (`copies.rs`). A
//!   tenant is told of none. Shown by
//!   `a_stop_proves_nothing_after_an_evacuation_that_is_not_known_to_have_ended_well`.

use std::collections::BTreeSet;

use picket_driver::{Call, DriverError};

use crate::actions::{self, Action, ActionEvent, Page};
use crate::driver::OpenstackDriver;
use crate::late;
use crate::live::{LANDED, LIVE};

pub(crate) const EVACUATE: &str = "evacuate";
/// The actions that move a running server, each with the step of it that ends on the host where the server runs from then on.
const MOVES: [(&str, &str); 2] = [(EVACUATE, "compute_rebuild_instance"), (LIVE, LANDED)];

/// A cold migration, and the step of it that Nova has the host do from which the server goes: it was there.
const COLD: [&str; 2] = ["migrate", "resize"];
const LEAVES: &str = "compute_resize_instance";

/// Where the server runs, as far as one move tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// On the host that Nova has for it.
    Here,
    /// Nothing: it started no guest elsewhere.
    Nothing,
    /// Perhaps on the host to which it was to go.
    PerhapsThere,
}

/// Facts about a server's moves that no later action changes: a reading does not ask for them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// The newest that ended well, where every evacuation before it did, too: what came before it says nothing.
    arrived: Option<String>,
    /// One whose steps say that it ended well. A delete that interrupts an evacuation makes them say so, too: only a list of actions that
    /// is asked for after that shows it.
    pub(crate) landed: Option<String>,
    /// Moves that ended, and moved nothing.
    pub(crate) idle: BTreeSet<String>,
    /// Actions that had ended before the server's delete.
    pub(crate) before_delete: BTreeSet<String>,
    /// Actions that had ended before the first evacuation or reset after them, which is earlier than a delete as a rule.
    pub(crate) before_marker: BTreeSet<String>,
    /// Live migrations that arrived.
    pub(crate) live: BTreeSet<String>,
    /// Neither this action nor an older one is an evacuation or a live migration.
    searched: Option<String>,
}

impl Moves {
    /// What came before that action says nothing, and neither does it.
    fn is_settled(&self, action: &Action) -> bool {
        [&self.arrived, &self.searched].into_iter().flatten().any(|request| *request == action.request_id)
    }
}

fn arrival(action: &Action) -> Option<&'static str> {
    MOVES.iter().find(|(name, _)| *name == action.action).map(|(_, step)| *step)
}

/// Reads one move. `delete`: the first delete of the server after it. `cold`: the cold migrations between the two.
fn says(action: &Action, delete: Option<&Action>, cold: &[Action]) -> Says {
    let Some(arrival) = arrival(action) else { return Says::Nothing };
    let is_evacuate = action.action == EVACUATE;
    let left = |cold: &[Action]| cold.iter().any(|cold| cold.is_of(action, arrival, LEAVES));
    if action.succeeded()
        && action.did(arrival)
        && (!is_evacuate
            || delete.is_none_or(|delete| delete.is_of(action, arrival, "compute_") || left(cold)))
    {
        return Says::Here;
    }
    // Nova notes the step before the destination does anything. Without that step a failed evacuation reached no host.
    let arrived = action.events.iter().flatten().any(|step| step.event == arrival);
    match action.action == EVACUATE && (arrived || action.failure().is_none()) {
        true => Says::PerhapsThere,
        false => Says::Nothing,
    }
}

impl Action {
    /// Whether a host that did a step of this is the one on which a move arrived. The evacuation that a delete interrupts ends with
    /// Success, too (`rebuild_instance` drops what it is told then), and starts its guest at the destination, while the delete is done
    /// by the source. `steps`: how the names of those steps begin.
    pub(crate) fn is_of(&self, moved: &Action, arrival: &str, steps: &str) -> bool {
        let hosts = |action: &Action, is_meant: &dyn Fn(&ActionEvent) -> bool| -> Vec<String> {
            let steps = action.events.iter().flatten().filter(|step| is_meant(step));
            steps.filter_map(|step| step.host.clone()).filter(|host| !host.is_empty()).collect()
        };
        let at = hosts(moved, &|step| step.event == arrival);
        hosts(self, &|step| step.event.starts_with(steps)).iter().any(|host| at.contains(host))
    }
}

impl OpenstackDriver {
    /// Why the server may run although its host says that it does not, by its newest actions, in words; `None`: none of them speaks for that.
    /// `is_gone`: its host ended it, by the newest of them.
    pub(crate) async fn may_run_elsewhere(
        &self,
        actions: &Page,
        is_gone: bool,
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        let all = self.since(actions, is_gone, call).await?;
        if is_gone && let Some(why) = self.may_have_started_since(&all, call).await? {
            return Ok(Some(why));
        }
        if let Some(why) = self.may_have_gone_live(&all, is_gone, call).await? {
            return Ok(Some(why));
        }
        if let Some(why) = self.may_start_late(&all, call).await? {
            return Ok(Some(why));
        }
        let known = self.ours().moves.clone();
        let since: Vec<Action> = all.into_iter().take_while(|action| !known.is_settled(action)).collect();
        // Most servers were never evacuated: no steps need be asked for.
        let Some(newest) = since.iter().find(|action| action.action == EVACUATE) else { return Ok(None) };
        self.evacuated().newest(&newest.request_id);
        // What came between the evacuation and the first delete after it, and the newest move that ended well.
        let (mut delete, mut between, mut here) = (None, Vec::new(), None);
        for action in &since {
            let request = &action.request_id;
            if action.deletes() {
                delete = Some(action);
                between.clear();
            }
            if COLD.contains(&action.action.as_str()) {
                between.push(action);
            }
            let is_evacuate = action.action == EVACUATE;
            if arrival(action).is_none() || known.idle.contains(request) || here.is_some() && !is_evacuate {
                continue;
            }
            let whole = self.with_steps(action, call).await?;
            let delete = match delete {
                Some(delete) if is_evacuate => Some(self.with_steps(delete, call).await?),
                _ => None,
            };
            let mut left = Vec::new();
            for cold in between.iter().filter(|_| delete.is_some()) {
                left.push(self.with_steps(cold, call).await?);
            }
            match says(&whole, delete.as_ref(), &left) {
                // It does not end the guest that an older evacuation started.
                Says::Here if here.is_none() => {
                    self.ours().moves.landed = Some(request.clone());
                    here = Some(request);
                }
                Says::Here => {}
                // A failed evacuation stays one; a live migration may arrive yet, which ends doubts and makes none.
                Says::Nothing if whole.failure().is_some() => {
                    self.ours().moves.idle.insert(request.clone());
                }
                Says::Nothing => {}
                // That guest counts as a copy of the server, whose hosts an administrator is told.
                Says::PerhapsThere if here.is_some() && !self.is_tenant() => return Ok(None),
                Says::PerhapsThere => {
                    return Ok(Some(format!(
                        "its evacuate {request} is not known to have ended well, and it may run on the host to which it was to go: \
                         look there; Nova does not end that guest"
                    )));
                }
            }
        }
        if here.is_some() && actions.landed.as_ref() == here {
            self.ours().moves.arrived = here.cloned();
        }
        Ok(None)
    }

    /// Why the host from which it was evacuated may start it, or has, by its actions as Nova has them now, in words.
    pub(crate) async fn may_start_where_it_was(&self, call: &Call) -> Result<Option<String>, DriverError> {
        let newest = self.newest_actions(call).await?;
        if newest.are_hidden {
            return Ok(Some("Nova has no actions of it".to_owned()));
        }
        let actions = self.since(&newest, false, call).await?;
        self.may_start_late(&actions, call).await
    }

    pub(crate) async fn with_steps(&self, action: &Action, call: &Call) -> Result<Action, DriverError> {
        let whole = actions::one(&self.cloud, &self.settings.server, &action.request_id, call).await?;
        Ok(whole.unwrap_or_else(|| action.clone()))
    }

    /// The actions since the one that is known, newest first, and else all that there are: a move may be older than the newest hundred.
    async fn since(&self, newest: &Page, is_gone: bool, call: &Call) -> Result<Vec<Action>, DriverError> {
        let known = self.ours().moves.clone();
        let mut was_marked = false;
        let mut is_known = |action: &Action| {
            was_marked |= late::is_marker(action);
            // The time of a delete alone tells which actions had ended before it, and an evacuation, or a reset, asks for all actions that came before it.
            let says_nothing = known.arrived.as_ref() == Some(&action.request_id);
            !is_gone && (says_nothing || known.is_settled(action) && !was_marked)
        };
        let (mut since, mut page) = (Vec::new(), newest.clone());
        loop {
            let whole = since.len() + page.actions.len();
            let goes_on = page.goes_on && !page.actions.is_empty();
            since.extend(page.actions.into_iter().take_while(|action| !is_known(action)));
            match since.last() {
                Some(last) if goes_on && since.len() == whole => {
                    let last = Some(last.request_id.as_str());
                    page = actions::page(&self.cloud, &self.settings.server, last, call).await?;
                }
                _ => break,
            }
        }
        // What is as old as that changes its place in the list no more.
        let is_move = |action: &Action| arrival(action).is_some();
        let last = newest.actions.last().filter(|_| since.len() > newest.actions.len());
        if let (Some(last), Some(old)) = (last, since.get(newest.actions.len().saturating_sub(1)..))
            && !old.iter().any(is_move)
        {
            self.ours().moves.searched = Some(last.request_id.clone());
        }
        Ok(since)
    }
}

#[cfg(test)]
mod tests;
