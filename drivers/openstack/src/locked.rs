//! A lock that somebody else put on a server, where a tenant logs in: Nova lets nobody but an administrator undo an administrator's
//! (`nova.compute.api.API.is_expected_locked_by`), and refuses this user's stop until then.

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use picket_driver::conformance::orders::Orders;
    use picket_driver::{Call, DriverError, Effect, ErrorKind, PowerDriver};
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use crate::driver::OpenstackDriver;
    use crate::fake_nova::{self, SERVER, forbidden};

    const UNLOCK: &str = "os_compute_api:os-lock-server:unlock:unlock_override";

    fn running() -> Value {
        json!({
            "id": SERVER, "tenant_id": "p1", "status": "ACTIVE", "OS-EXT-STS:task_state": null, "OS-EXT-STS:power_state": 1,
            "locked": true, "locked_reason": "maintenance",
        })
    }

    async fn refused_off(driver: &OpenstackDriver) -> DriverError {
        let clock = fake_nova::clock();
        let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
        let call = Call::control(Instant::now() + Duration::from_secs(30), clock, orders.permit());
        // What comes before an off, and leaves a token.
        let _ = driver.read_power(&call).await;
        driver.power_off(&orders.off().await.expect("an order"), &call).await.expect_err("it is refused")
    }

    #[tokio::test]
    async fn a_lock_that_a_tenant_may_not_undo_is_not_waited_out() {
        let nova = |asked: &str| {
            Some(match asked.contains("unlock") {
                true => forbidden(UNLOCK),
                false => json!({ "server": running() }),
            })
        };
        let error = refused_off(&fake_nova::driver("member", nova).await).await;
        assert_eq!((error.kind, error.effect), (ErrorKind::Forbidden, Effect::DidNotHappen), "{error}");
        assert!(error.is_final, "{error}");
        assert!(error.detail.contains("an administrator locked it"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_its_user_may_not_see_is_not_waited_for() {
        let nova = |asked: &str| Some(forbidden(asked));
        let error = refused_off(&fake_nova::driver("reader", nova).await).await;
        assert_eq!((error.kind, error.effect), (ErrorKind::Forbidden, Effect::DidNotHappen), "{error}");
        assert!(error.is_final, "{error}");
    }
}
