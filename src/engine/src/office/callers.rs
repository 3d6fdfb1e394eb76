//! Whether those who asked for a fence still may, once their request has waited (S14).

use picket_core::roles::{Role, Roles};

use super::Office;
use crate::parts::NodePlan;
use crate::request::FenceCall;

/// What whoever asked may by now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct May {
    /// It asks as a person, and not as a program.
    pub(crate) as_a_person: bool,
}

impl Office {
    /// Judges a request by the roles of now.
    ///
    /// # Errors
    /// In words, what its caller has no more.
    pub(crate) fn may_still(&self, call: &FenceCall, plan: &NodePlan) -> Result<May, String> {
        let Some(asker) = &call.asker else { return Ok(May { as_a_person: true }) };
        may(&self.papers().roles, call, asker.clone(), plan)
    }
}

fn may(
    roles: &Roles,
    call: &FenceCall,
    asker: picket_core::roles::Person,
    plan: &NodePlan,
) -> Result<May, String> {
    let (caller, node, holder) = (roles.of(asker), &plan.id, &call.holder.name);
    let lost = if !caller.may(Role::Controller, node, &plan.labels) {
        format!("{} has no role any more that may fence {node}", caller.name)
    } else if !caller.may_act_for(holder, node, &plan.labels) {
        format!("{} may not act for {holder:?} on {node} any more", caller.name)
    } else {
        return Ok(May { as_a_person: caller.may(Role::Operator, node, &plan.labels) });
    };
    Err(format!("{lost}: it waited meanwhile, and nothing was sent; an admin can give that back in [roles]"))
}
