//! A lock that somebody else put on a server, where a tenant logs in: Nova lets nobody but an administrator undo an administrator's
//! (`nova.compute.api.API.is_expected_locked_by`), and refuses this user's stop until then.

use picket_driver::{Call, DriverError};

use crate::actions;
use crate::cloud::{Token, tame};
use crate::driver::OpenstackDriver;
use crate::server::Server;

impl OpenstackDriver {
    /// What keeps a tenant's stop away, in words: the server is locked, and not by its own project. Nova does not show who locked a server; of
    /// its actions the newest lock tells for which project that was done, and a lock of the server's own project any member undoes.
    ///
    /// # Errors
    /// Its actions could not be asked for.
    pub(crate) async fn locked_by_another(
        &self,
        server: &Server,
        token: &Token,
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        if token.said.is_admin() || server.locked != Some(true) {
            return Ok(None);
        }
        let newest = actions::newest(&self.cloud, &self.settings.server, call).await?;
        let lock = newest.actions.iter().find(|action| action.action == "lock");
        let project = lock.and_then(|lock| lock.project_id.as_ref());
        if project.is_some() && project == server.tenant_id.as_ref() {
            return Ok(None);
        }
        let by_whom = match project {
            Some(_) => "locked by another project's user",
            None => "locked, and its actions do not say by whom",
        };
        let reason = server.locked_reason.as_deref().map(|reason| format!(" ({:?})", tame(reason)));
        Ok(Some(format!(
            "it is {by_whom}{}: Nova refuses a tenant's stop of what an administrator locked; an administrator ends that \
             (openstack server unlock {})",
            reason.unwrap_or_default(),
            server.id
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use picket_driver::{Effect, ErrorKind, PowerDriver};
    use serde_json::{Value, json};

    use crate::fake_nova::{self, SERVER, forbidden, refused_off};

    const UNLOCK: &str = "os_compute_api:os-lock-server:unlock:unlock_override";

    fn running() -> Value {
        json!({
            "id": SERVER, "tenant_id": "p1", "status": "ACTIVE", "OS-EXT-STS:task_state": null, "OS-EXT-STS:power_state": 1,
            "locked": true, "locked_reason": "maintenance",
        })
    }

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_lock_that_a_tenant_may_not_undo_is_not_waited_out() {
        let nova = |asked: &str| {
            Some(match asked.contains("unlock") {
                true => forbidden(UNLOCK),
                false => json!({ "server": running() }),
            })
        };
        let error = refused_off(&fake_nova::driver("member", nova).await, LONG).await;
        assert_eq!((error.kind, error.effect), (ErrorKind::Forbidden, Effect::DidNotHappen), "{error}");
        assert!(error.is_final, "{error}");
        assert!(error.detail.contains("an administrator locked it"), "{error}");
    }

    /// S16: whatever keeps a fence from its end is an obstacle before there is a fence.
    #[tokio::test]
    async fn a_lock_by_another_project_is_an_obstacle_of_a_tenant_s_check() {
        let of =
            |project: Option<&str>| json!([{ "action": "lock", "request_id": "r2", "project_id": project }]);
        let later = json!([
            { "action": "lock", "request_id": "r3", "project_id": "ops" },
            { "action": "lock", "request_id": "r2", "project_id": "p1" },
        ]);
        for (role, locked, actions, is_told) in [
            ("member", true, of(Some("ops")), true),
            ("member", true, later, true),
            ("member", true, of(None), true),
            ("member", true, json!([]), true),
            // Its own project's: it undoes that itself.
            ("member", true, of(Some("p1")), false),
            ("member", false, of(Some("ops")), false),
            ("admin", true, of(Some("ops")), false),
        ] {
            let (shown, mut server) = (actions.clone(), running());
            server["locked"] = json!(locked);
            let nova = move |asked: &str| {
                Some(match asked.contains("/os-instance-actions") {
                    true => json!({ "instanceActions": shown }),
                    false => json!({ "server": server }),
                })
            };
            let driver = fake_nova::driver(role, nova).await;
            driver.identify(&fake_nova::reading()).await.expect("it answers");
            let told = driver.obstacles();
            assert_eq!(!told.is_empty(), is_told, "{role} {locked} {actions}: {told:?}");
            assert!(
                told.iter().all(|told| told.contains("maintenance") && told.contains("unlock")),
                "{told:?}"
            );
        }
    }

    /// The obstacle goes when the lock does.
    #[tokio::test]
    async fn a_lock_that_was_undone_is_an_obstacle_no_more() {
        let mut checks = 0;
        let nova = move |asked: &str| {
            if asked.contains("/os-instance-actions") {
                return Some(json!({ "instanceActions": [] }));
            }
            let mut server = running();
            if asked.starts_with("/servers/") {
                checks += 1;
                server["locked"] = json!(checks == 1);
            }
            Some(json!({ "server": server }))
        };
        let driver = fake_nova::driver("member", nova).await;
        for count in [1, 0] {
            driver.identify(&fake_nova::reading()).await.expect("it answers");
            assert_eq!(driver.obstacles().len(), count, "{:?}", driver.obstacles());
        }
    }

    #[tokio::test]
    async fn a_server_that_its_user_may_not_see_is_not_waited_for() {
        let nova = |asked: &str| Some(forbidden(asked));
        let error = refused_off(&fake_nova::driver("reader", nova).await, LONG).await;
        assert_eq!((error.kind, error.effect), (ErrorKind::Forbidden, Effect::DidNotHappen), "{error}");
        assert!(error.is_final, "{error}");
    }
}
