//! Keeping a server off by Nova's own means (S11): `lock`, with a reason (2.73).
//!
//! **Invariant.** Nova's lock binds who is no administrator, its owner too, and nobody else: an administrator's stands from before the
//! off; a tenant's would bar its own stop and detach, and stands once its last release is complete. Before a tenant stops or starts
//! a server what locks it is undone.
//! **Invariant.** What was found is put back, by whichever process undoes the hold; a lock of our own, left by a fence that is gone, is not
//! what was found.
//! **Invariant.** Whoever may lock the server may write our words as the reason: a lock that is found says nothing of who locked it. An administrator
//! locks all the same, and calls a lock its own only where Nova does not take it for the owner's.

use picket_cloud::Bound;
use picket_core::order::{HoldOrder, UnholdOrder};
use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind, HoldFound, HoldReport};
use serde_json::json;

use crate::actions;
use crate::cloud::Token;
use crate::driver::OpenstackDriver;
use crate::server::Server;
use crate::switching::refused;

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
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use parking_lot::Mutex;
    use picket_core::record::HoldState;
    use picket_driver::conformance::orders::Orders;
    use picket_driver::{Call, HoldFound, PowerDriver};
    use serde_json::json;
    use tokio::time::Instant;

    use super::{SERVICE, STOPS, UP};
    use crate::driver::OpenstackDriver;
    use crate::fake_nova::{self, stopped};

    #[test]
    fn the_stops_that_there_were_are_of_one_generation() {
        assert!(STOPS.starts_with(HoldState::SEEN));
    }

    /// The driver of a server whose host's service is forced down, or is not, and what Nova is told.
    async fn on(forced: bool) -> (OpenstackDriver, Arc<Mutex<Vec<String>>>) {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = told.clone();
        let mut is_forced = forced;
        let nova = move |asked: &str| {
            if asked.starts_with("PUT ") {
                heard.lock().push(asked.to_owned());
                is_forced = false;
            }
            if asked.contains("/os-services") {
                return Some(
                    json!({ "services": [{ "id": "s1", "state": "down", "forced_down": is_forced }] }),
                );
            }
            let mut server = stopped();
            server["host_status"] = json!(if is_forced { "DOWN" } else { "UP" });
            Some(json!({ "server": server }))
        };
        (fake_nova::driver("admin", nova).await, told)
    }

    async fn orders(driver: &OpenstackDriver) -> (Orders, Call) {
        let clock = fake_nova::clock();
        let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
        let call = Call::control(Instant::now() + Duration::from_secs(30), clock, orders.permit());
        (orders, call)
    }

    /// A successor does not know what the process before it forced down.
    #[tokio::test]
    async fn what_was_not_forced_down_before_the_hold_is_put_back_by_a_successor() {
        let by_host = HoldFound::from([(UP.to_owned(), "compute-7".to_owned())]);
        let by_service = HoldFound::from([(SERVICE.to_owned(), "s1".to_owned())]);
        for (found, forced, puts) in [
            (&by_host, true, 1),
            (&by_service, true, 1),
            (&by_host, false, 0),
            (&by_service, false, 0),
            // It was so before.
            (&HoldFound::new(), true, 0),
        ] {
            let (driver, told) = on(forced).await;
            let (orders, call) = orders(&driver).await;
            let left = driver.left_beside(found, &call).await.expect("told");
            assert_eq!(left.is_some_and(|left| left.contains("s1")), puts > 0, "{found:?}, {forced}");
            let undone = driver.disengage_hold(&orders.unhold(found).await.expect("an order"), &call).await;
            assert_eq!(undone.expect("undone").detail, "");
            let told = told.lock().clone();
            assert_eq!(told.len(), puts, "{found:?}, {forced}: {told:?}");
            assert!(told.iter().all(|one| one == r#"PUT /os-services/s1 {"forced_down":false}"#), "{told:?}");
        }
    }

    /// Whoever is a member of the server's project writes what a lock's reason says, and undoes its owner's lock (S11).
    #[tokio::test]
    async fn a_lock_that_its_owner_made_or_may_undo_is_no_hold_of_an_administrator_s() {
        let of = |project: &str| Some(project.to_owned());
        for (project, locked, holds) in [
            (of("p2"), None, true),
            // A forgery of the owner's, and a lock of ours: Nova shows one as the other.
            (of("p2"), of("picket: fenced, generation 7"), true),
            (of("p1"), None, false),
            (of("p1"), of("picket: fenced, generation 7"), false),
            (None, None, false),
        ] {
            let told: Arc<Mutex<Vec<String>>> = Arc::default();
            let (heard, mut now) = (told.clone(), locked.clone());
            let whose = project.clone();
            let nova = move |asked: &str| {
                if asked.starts_with("POST ") {
                    heard.lock().push(asked.to_owned());
                    now = Some("picket: fenced, generation 1".to_owned());
                }
                if asked.contains("/os-instance-actions") {
                    return Some(json!({ "instanceActions": [] }));
                }
                let mut server = stopped();
                server["tenant_id"] = json!(whose);
                (server["locked"], server["locked_reason"]) = (json!(now.is_some()), json!(now));
                Some(json!({ "server": server }))
            };
            let mut driver = fake_nova::driver("admin", nova).await;
            driver.settings.hold = true;
            let (orders, call) = orders(&driver).await;
            let order = orders.hold(&HoldFound::new()).await.expect("an order");
            let report = driver.engage_hold(&order, &call).await.expect("it is locked");
            let said = format!("{project:?}, {locked:?}: {report:?}");
            assert_eq!(!report.engaged.is_empty(), holds, "{said}");
            assert_eq!(report.detail.contains(super::OWNERS), !holds, "{said}");
            let told = told.lock().clone();
            assert!(told.len() == 1 && told[0].contains("locked_reason"), "{said}: {told:?}");
            // A look at it says the same.
            let found = driver.inspect_hold(&call).await.expect("told");
            assert_eq!(!driver.engaged(&found).is_empty(), holds, "{said}: {found:?}");
        }
    }

    /// Nova would say DOWN of a host that lives, by our own word.
    #[tokio::test]
    async fn a_host_that_was_forced_down_since_the_hold_is_asked_before_its_server_is_not_stopped() {
        let not_forced = HoldFound::from([(SERVICE.to_owned(), "s1".to_owned())]);
        for (by_this_process, found, puts) in [
            (true, &HoldFound::new(), 1),
            // A process before this one forced it down.
            (false, &not_forced, 1),
            // It was so before.
            (false, &HoldFound::new(), 0),
        ] {
            let (driver, told) = on(true).await;
            let (orders, call) = orders(&driver).await;
            driver.services().forced = by_this_process.then(|| "s1".to_owned());
            let stopped = driver.power_off(&orders.off_found(found).await.expect("an order"), &call).await;
            assert_eq!(told.lock().len(), puts, "{by_this_process}, {found:?}");
            let is_refused = stopped.is_err_and(|error| error.detail.contains("compute host"));
            assert_eq!(is_refused, puts == 0, "{by_this_process}, {found:?}");
        }
    }

    /// The release of another server of that host forces its service down again whenever its turn comes.
    #[tokio::test]
    async fn a_host_that_is_forced_down_again_and_again_is_asked_once_a_call() {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = told.clone();
        let nova = move |asked: &str| {
            if asked.starts_with("PUT ") {
                heard.lock().push(asked.to_owned());
            }
            if asked.contains("/os-services") {
                return Some(json!({ "services": [{ "id": "s1", "state": "up", "forced_down": true }] }));
            }
            let mut server = stopped();
            server["host_status"] = json!("DOWN");
            Some(json!({ "server": server }))
        };
        let driver = fake_nova::driver("admin", nova).await;
        let (orders, call) = orders(&driver).await;
        let found = HoldFound::from([(SERVICE.to_owned(), "s1".to_owned())]);
        let stopped = driver.power_off(&orders.off_found(&found).await.expect("an order"), &call).await;
        assert!(stopped.is_err_and(|error| error.detail.contains("compute host")));
        assert_eq!(told.lock().len(), 1);
    }
}
