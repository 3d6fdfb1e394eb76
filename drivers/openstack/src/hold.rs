//! Keeping a server off by Nova's own means (S11): `lock`, with a reason (2.73).
//!
//! # Invariants
//!
//! - Nova's lock binds callers without administrator's rights, its owner too, and nobody else. An
//!   administrator's lock stands from before the off. A tenant's lock would bar its own stop and detach, and
//!   stands once its last release is complete.
//! - Before a tenant stops or starts a server, what locks it is undone. Shown by
//!   `a_lock_that_was_undone_for_a_start_is_put_back_whatever_became_of_that`.
//! - What was found is put back, by whichever process undoes the hold. A lock of our own, left by a fence
//!   that is gone, is not what was found. Shown by
//!   `what_was_not_forced_down_before_the_hold_is_put_back_by_a_successor`.
//! - Whoever may lock the server may write our words as the reason: a lock that is found does not say who
//!   locked it. An administrator locks all the same, and calls a lock its own only where Nova does not take
//!   it for the owner's. Shown by
//!   `a_lock_that_its_owner_made_or_may_undo_is_no_hold_of_an_administrator_s`.

use picket_cloud::Bound;
use picket_core::order::{HoldOrder, UnholdOrder};
use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind, HoldFound, HoldReport};
use serde_json::json;

use crate::actions;
use crate::cloud::Token;
use crate::driver::OpenstackDriver;
use crate::power_commands::refused;
use crate::server::Server;

/// What was found: whether it was locked by somebody else, why, and our own stops that there were.
const LOCKED: &str = "locked";
const REASON: &str = "locked_reason";
/// Of one generation (`HoldState::SEEN`).
pub(crate) const STOPS: &str = "seen:stops";
/// What stands of ours: not put back, told.
const OURS: &str = "our_lock_running";
/// The compute service of a host that was not up, which was not forced down: by its id.
pub(crate) const SERVICE: &str = "compute_service";
/// The host, where it was up: what is forced down never is.
pub(crate) const UP: &str = "compute_host_up";
/// What the reason of every lock of ours begins with.
const PREFIX: &str = "picket: ";
const HOLDS: &str = "locked";
/// What is told where [`locks_as_owner`].
pub(crate) const OWNERS: &str = "this administrator is logged in to the server's own project: its lock is the owner's to Nova, and any member undoes it";

impl Server {
    fn is_locked(&self) -> bool {
        self.locked == Some(true)
    }

    pub(crate) fn is_locked_by_us(&self) -> bool {
        self.is_locked() && self.locked_reason.as_deref().is_some_and(|reason| reason.starts_with(PREFIX))
    }
}

/// Whether Nova takes an administrator's lock for that of the server's owner (`nova.compute.api.API.lock`): every member of the project undoes it.
pub(crate) fn locks_as_owner(server: &Server, token: &Token) -> bool {
    token.said.is_admin() && (server.tenant_id.is_none() || server.tenant_id == token.said.project)
}

/// What of a hold stands.
pub(crate) fn engaged(now: &HoldFound) -> Vec<String> {
    let stands = now.get(OURS).is_some_and(|ours| ours == "true");
    if stands { vec![HOLDS.to_owned()] } else { Vec::new() }
}

fn report(engaged: bool, detail: impl Into<String>) -> HoldReport {
    let engaged = if engaged { vec![HOLDS.to_owned()] } else { Vec::new() };
    HoldReport { engaged, detail: detail.into() }
}

impl OpenstackDriver {
    pub(crate) async fn inspect(&self, call: &Call) -> Result<HoldFound, DriverError> {
        let Some(server) = self.server_unless_ended(call).await? else { return Ok(HoldFound::new()) };
        let token = self.cloud.token(call).await?;
        let newest = actions::newest(&self.cloud, &self.settings.server, call).await?;
        let mut found = HoldFound::new();
        // What is not told is not none: whoever sees them later would take an old stop for one of ours.
        if !newest.are_hidden {
            let stops: Vec<String> = actions::stops(&newest.actions, &token.said.user).into_iter().collect();
            found.insert(STOPS.to_owned(), stops.join(" "));
        }
        match (server.host_status.as_deref(), &server.host) {
            (Some("UP"), Some(host)) => drop(found.insert(UP.to_owned(), host.clone())),
            (Some(_), Some(host)) => {
                let service = self.compute_service(host, call).await?;
                if let Some(service) = service.filter(|service| !service.forced_down) {
                    found.insert(SERVICE.to_owned(), service.id);
                }
            }
            _ => {}
        }
        if !self.settings.hold {
            return Ok(found);
        }
        let theirs = server.is_locked() && !server.is_locked_by_us();
        found.insert(LOCKED.to_owned(), theirs.to_string());
        let ours = server.is_locked_by_us() && !locks_as_owner(&server, &token);
        found.insert(OURS.to_owned(), ours.to_string());
        if let Some(reason) = server.locked_reason.filter(|_| theirs) {
            found.insert(REASON.to_owned(), reason);
        }
        Ok(found)
    }

    pub(crate) async fn engage(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        call.may_send()?;
        self.services().found_before(order.found().get(SERVICE), order.found().get(UP));
        if !self.settings.hold {
            return Ok(report(false, "hold = false in the settings"));
        }
        let token = self.cloud.token(call).await?;
        if !token.said.is_admin() && !order.is_late() {
            return Ok(report(
                false,
                "a tenant's lock would bar its own stop and detach: it is locked once all is released",
            ));
        }
        let server = self.server_there(call).await?;
        // Of a tenant's own lock Nova makes no other one. An administrator's goes over whatever the owner had locked, with whatever words.
        if server.is_locked_by_us() && !token.said.is_admin() {
            return Ok(report(true, ""));
        }
        let reason = format!("{PREFIX}fenced, generation {}", order.generation());
        let locked = self.lock(Some(&reason), Some(Bound::of(order, None)), call).await?;
        if locks_as_owner(&server, &token) {
            return Ok(report(false, format!("{OWNERS} {}", locked.detail).trim().to_owned()));
        }
        Ok(locked)
    }

    pub(crate) async fn disengage(
        &self,
        order: &UnholdOrder,
        call: &Call,
    ) -> Result<HoldReport, DriverError> {
        call.may_send()?;
        let left_down = self.put_service_back(order, call).await;
        let unlocked = self.unlock_as_found(order, call).await?;
        Ok(HoldReport { detail: [unlocked.detail, left_down].join(" ").trim().to_owned(), ..unlocked })
    }

    /// Lets the compute service report for itself again where it was forced down after the hold was placed, by whichever process: of a host
    /// that does not live Nova says `down` by itself, and nobody may evacuate from one that lives. Returns in words what could not be put back.
    async fn put_service_back(&self, order: &UnholdOrder, call: &Call) -> String {
        let detail = match self.forced_by_us(order.found(), call).await {
            Ok(None) => return String::new(),
            Ok(Some(service)) => match self
                .force_down(&service, false, Some(Bound::of(order, None)), call)
                .await
            {
                Ok(()) => {
                    self.services().forced = None;
                    return String::new();
                }
                Err(error) => format!("the compute service {service} was forced down, and is still: {error}"),
            },
            Err(error) => format!("whether its compute service is forced down is not told: {error}"),
        };
        tracing::warn!(server = self.settings.server, detail, "what was found is not put back");
        detail
    }

    async fn unlock_as_found(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        let found = order.found();
        let Some(was_locked) = found.get(LOCKED) else { return Ok(HoldReport::default()) };
        let server = self.server_there(call).await?;
        if server.is_locked_by_us() || (was_locked == "true" && !server.is_locked()) {
            self.unlock(Some(Bound::of(order, None)), call).await?;
        }
        if was_locked == "true" {
            let reason = found.get(REASON).map(String::as_str);
            let put_back = self.lock(reason, Some(Bound::of(order, None)), call).await?;
            return Ok(HoldReport { engaged: Vec::new(), ..put_back });
        }
        let now = self.server_there(call).await?;
        match now.is_locked_by_us() {
            true => Ok(report(true, "told to unlock, and it is still locked by us")),
            false => Ok(HoldReport::default()),
        }
    }

    /// Whoever is no administrator undoes what locks a server before it is stopped, started, or loses a volume. True if it was.
    pub(crate) async fn unlock_for(
        &self,
        server: &Server,
        effort: &Effort,
        call: &Call,
    ) -> Result<bool, DriverError> {
        let is_admin = self.cloud.held(call.now()).is_some_and(|token| token.said.is_admin());
        if is_admin || !server.is_locked() {
            return Ok(false);
        }
        self.unlock(None, call).await.map_err(|error| effort.judge(error))?;
        Ok(true)
    }

    /// What somebody else had locked, and was unlocked for a start, is locked again.
    pub(crate) async fn lock_again(&self, server: &Server, call: &Call) {
        if server.is_locked_by_us() {
            return;
        }
        let locked = self.lock(server.locked_reason.as_deref(), None, call).await;
        if !locked.as_ref().is_ok_and(|report| report.detail.is_empty()) {
            tracing::warn!(
                server = server.id,
                ?locked,
                "what had locked the server was not put back after its start"
            );
        }
    }

    async fn lock(
        &self,
        reason: Option<&str>,
        bound: Option<Bound>,
        call: &Call,
    ) -> Result<HoldReport, DriverError> {
        let body = match reason {
            Some(reason) => json!({ "lock": { "locked_reason": reason } }),
            None => json!({ "lock": null }),
        };
        let mut effort = Effort::repeatable();
        let told = self.act(body, bound, &mut effort, call).await?;
        match told.code.as_u16() {
            202 => Ok(report(true, "")),
            401 | 404 | 429 | 500.. => Err(refused("lock", &told, &mut effort)),
            _ => Ok(report(false, format!("lock: {}", told.words))),
        }
    }

    pub(crate) async fn unlock(&self, bound: Option<Bound>, call: &Call) -> Result<(), DriverError> {
        let mut effort = Effort::repeatable();
        let told = self.act(json!({ "unlock": null }), bound, &mut effort, call).await?;
        match told.code.as_u16() {
            202 => Ok(()),
            // Nova's words for what an administrator locked, and a tenant may not undo.
            403 => {
                effort.refused();
                let detail =
                    format!("an administrator locked it, and this user may not unlock it: {}", told.words);
                Err(DriverError::new(ErrorKind::Forbidden, Effect::DidNotHappen, detail).for_good(true))
            }
            _ => Err(refused("unlock", &told, &mut effort)),
        }
    }
}

#[cfg(test)]
mod tests;
