//! S18: whoever stands between here and Nova may repeat the token of a request.

use std::time::Duration;

use picket_driver::PowerDriver;
use serde_json::json;

use crate::fake_nova::{self, SERVER, TOKEN, conflict, forbidden, stopped};

#[tokio::test]
async fn no_token_is_shown_that_an_answer_repeats() {
    let driver = fake_nova::driver("member", |_| Some(forbidden(TOKEN))).await;
    let error = driver.read_power(&fake_nova::reading()).await.expect_err("refused").to_string();
    assert!(error.contains("Policy doesn't allow [struck out]") && !error.contains(TOKEN), "{error}");
    let running = || {
        let mut server = stopped();
        (server["status"], server["OS-EXT-STS:power_state"]) = ("ACTIVE".into(), 1.into());
        json!({ "server": server })
    };
    let driver = fake_nova::driver("admin", move |asked| match asked {
        asked if asked.starts_with("POST ") => Some(conflict(&format!("You sent {TOKEN}"))),
        asked if asked.ends_with(SERVER) => Some(running()),
        _ => None,
    })
    .await;
    let error = fake_nova::refused_off(&driver, Duration::from_secs(30)).await.to_string();
    assert!(error.contains("You sent [struck out]") && !error.contains(TOKEN), "{error}");
}
