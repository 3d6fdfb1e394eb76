//! Whether those who asked for a fence still may, once their request has waited (S14), or once it comes to the machine on which the node
//! runs (S22).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use picket_core::budget::pause::PauseScope;
use picket_core::ids::NodeId;
use picket_core::roles::{Person, Role, Roles};

use super::{Office, Says};
use crate::error::EngineError;
use crate::parts::NodePlan;
use crate::request::FenceCall;

/// What whoever asked may by now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct May {
    /// It asks as a person, and not as a program.
    pub(crate) as_a_person: bool,
}

impl Office {
    /// What the settings of now call a node; of one that left them, what they called it.
    pub(crate) fn labels(&self, plan: &NodePlan) -> Arc<BTreeMap<String, String>> {
        self.papers().says(plan).labels
    }

    /// Judges a request by the roles of now.
    ///
    /// # Errors
    /// In words, what its caller has no more.
    pub(crate) fn may_still(&self, call: &FenceCall, plan: &NodePlan) -> Result<May, String> {
        let Some(asker) = &call.holder.asker else { return Ok(May { as_a_person: true }) };
        let papers = self.papers();
        may(&papers.roles, call, asker.clone(), &plan.id, &papers.says(plan).labels)
    }

    /// Judges any other request by the roles of now: whoever asked has all of `roles`, and acts for `holder`, where one is named.
    ///
    /// # Errors
    /// In words, what its caller has no more.
    pub(crate) fn may_still_act(
        &self,
        person: &Person,
        roles: &[Role],
        holder: Option<&str>,
        plan: &NodePlan,
    ) -> Result<(), String> {
        let papers = self.papers();
        let (caller, labels, node) = (papers.roles.of(person.clone()), papers.says(plan).labels, &plan.id);
        if let Some(role) = roles.iter().find(|role| !caller.may(**role, node, &labels)) {
            return Err(lost(&format!("{} has not the role {role} for {node} any more", caller.name)));
        }
        match holder.filter(|holder| !caller.may_act_for(holder, node, &labels)) {
            Some(holder) => {
                Err(lost(&format!("{} may not act for {holder:?} on {node} any more", caller.name)))
            }
            None => Ok(()),
        }
    }

    /// Why nobody of those who asked for a fence may have it by the roles of now; `None`: one may, or nobody was asked for a role.
    pub(crate) fn nobody_may(&self, askers: &[Person], plan: &NodePlan) -> Option<String> {
        let papers = self.papers();
        let labels = papers.says(plan).labels;
        let may = |asker: &Person| papers.roles.of(asker.clone()).may(Role::Controller, &plan.id, &labels);
        if askers.is_empty() || askers.iter().any(may) {
            return None;
        }
        Some(lost(&format!(
            "nobody who asked for it ({}) has the role controller for {} any more",
            names(askers),
            plan.id
        )))
    }

    /// Judges by the roles, labels and groups of now whether a pause of that scope may be placed or ended: the role is needed for each node in it.
    ///
    /// # Errors
    /// The caller has it no more.
    pub(super) fn may_still_pause(
        &self,
        right: Option<&(Person, Role)>,
        scope: &PauseScope,
    ) -> Result<(), EngineError> {
        let Some((person, role)) = right else { return Ok(()) };
        let papers = self.papers();
        let caller = papers.roles.of(person.clone());
        let within = |(node, says): &(&NodeId, &Says)| match scope {
            PauseScope::Everything => false,
            PauseScope::Group(name) => says.groups.contains(name),
            PauseScope::Node(name) => *node == name,
        };
        let mut within = papers.nodes.iter().filter(within).peekable();
        // Of everything, and of what no node is in any more, nothing less is enough.
        let may_each =
            within.peek().is_some() && within.all(|(node, says)| caller.may(*role, node, &says.labels));
        if may_each || caller.has_everywhere(*role) {
            return Ok(());
        }
        Err(EngineError::RoleLost(lost(&format!(
            "{} has not the role {role} for {scope} any more",
            caller.name
        ))))
    }

    /// Judges by the roles of now whether a machine may be fenced for a node that runs on it, and tells by whose right: a role for the node alone
    /// does not reach the machine, which carries others too.
    ///
    /// # Errors
    /// In words, what is missing, and who can go on.
    pub(crate) fn may_for_child(
        &self,
        child: &NodeId,
        askers: &[Person],
        parent: &NodePlan,
    ) -> Result<String, String> {
        let papers = self.papers();
        let says = papers.says(parent);
        let may = |asker: &&Person| {
            papers.roles.of((*asker).clone()).may(Role::Controller, &parent.id, &says.labels)
        };
        let by_role = names(askers.iter().filter(may));
        if !by_role.is_empty() {
            return Ok(by_role);
        }
        let (all, machine) = (names(askers), &parent.id);
        if says.fenced_for.contains(child) {
            return Ok(all);
        }
        Err(format!(
            "nobody who asked for {child} ({all}) has the role controller for {machine}, and `fenced_for` of {machine} in the settings does not name {child}: \
             somebody who has that role for {machine} can `picket fence {machine}`, and once that is proven off `picket retry {child}`"
        ))
    }
}

/// Each name once.
pub(crate) fn names<'a>(people: impl IntoIterator<Item = &'a Person>) -> String {
    let names: BTreeSet<&str> = people.into_iter().map(|person| person.name.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn may(
    roles: &Roles,
    call: &FenceCall,
    asker: Person,
    node: &NodeId,
    labels: &BTreeMap<String, String>,
) -> Result<May, String> {
    let (caller, holder) = (roles.of(asker), &call.holder.name);
    let words = if !caller.may(Role::Controller, node, labels) {
        format!("{} has no role any more that may fence {node}", caller.name)
    } else if !caller.may_act_for(holder, node, labels) {
        format!("{} may not act for {holder:?} on {node} any more", caller.name)
    } else {
        return Ok(May { as_a_person: caller.may(Role::Operator, node, labels) });
    };
    Err(lost(&words))
}

fn lost(words: &str) -> String {
    format!("{words}: it waited meanwhile, and nothing was sent; an admin can give that back in [roles]")
}
