use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::power::Power;
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver::conformance::orders::Orders;
use picket_driver::{Effect, PowerDriver};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::*;
use crate::connection::tests::{ServiceEnd, service_end};
use crate::driver::RedfishDriver;
use crate::pool::Pool;
use crate::settings::Settings;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn boot(&self) -> BootTime {
        BootTime::default()
    }

    fn wall(&self) -> WallTime {
        WallTime::default()
    }
}

/// A driver of a system that is off and whose reset takes those, and what it was asked.
async fn off_and_offering(allowed: Value) -> (RedfishDriver, Arc<Mutex<Vec<String>>>) {
    let ServiceEnd { listener, acceptor, settings, .. } = service_end().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = asked.clone();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("somebody comes");
        let mut stream = acceptor.accept(stream).await.expect("hands are shaken");
        let mut piece = [0; 4_096];
        while let Ok(length @ 1..) = stream.read(&mut piece).await {
            let text = String::from_utf8_lossy(&piece[..length]).into_owned();
            let line = text.lines().next().unwrap_or_default().to_owned();
            let reset = json!({ "target": "/s/1/reset", "ResetType@Redfish.AllowableValues": allowed });
            let said = match line.split(' ').nth(1) {
                Some("/redfish/v1/") => json!({ "Systems": { "@odata.id": "/s" } }),
                Some("/s") => json!({ "Members": [{ "@odata.id": "/s/1" }] }),
                _ => json!({ "PowerState": "Off", "Actions": { "#ComputerSystem.Reset": reset } }),
            };
            heard.lock().push(line);
            let said = said.to_string();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{said}", said.len());
            stream.write_all(answer.as_bytes()).await.expect("written");
            stream.flush().await.expect("written");
        }
    });
    // Without a session there is no more to answer.
    let settings = Settings { authentication: Authentication::Basic, ..settings };
    (RedfishDriver::new(settings, &Pool::default()).expect("no file is needed"), asked)
}

/// A button does what the machine's state makes of it, and a restart is no on (S9).
#[tokio::test]
async fn what_offers_no_absolute_on_is_not_switched_on_in_another_way() {
    let others = [
        "ForceOff",
        "PushPowerButton",
        "PowerCycle",
        "FullPowerCycle",
        "ForceRestart",
        "GracefulRestart",
        "Nmi",
    ];
    let (driver, asked) = off_and_offering(json!(others)).await;
    let orders = Orders::new(driver.traits(), Arc::new(Still)).await.expect("orders");
    // No bound of an idle machine: what is slow here is the machine.
    let call = Call::control(Instant::now() + Duration::from_secs(30), Arc::new(Still), orders.permit());
    assert_eq!(driver.read_power(&call).await.expect("a reading").power, Power::Off);
    let order = orders.on_in(driver.session()).await.expect("an order");
    let error = driver.power_on(order, &call).await.expect_err("it cannot be switched on");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unsupported, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("offers neither On nor ForceOn"), "{error}");
    let asked = asked.lock();
    assert!(asked.iter().all(|line| line.starts_with("GET ")), "{asked:?}");
}

#[test]
fn only_a_whole_list_says_what_is_not_in_it() {
    let said = |list: Value| members(list.as_object().expect("an object"));
    let one = json!({ "@odata.id": "/s/1" });
    assert_eq!(said(json!({ "Members": [one] })), Some(vec!["/s/1".to_owned()]));
    assert_eq!(said(json!({ "Members": [], "Members@odata.count": 0 })), Some(Vec::new()));
    for odd in [
        json!({}),
        json!({ "Members": {} }),
        json!({ "Members": [one], "Members@odata.count": 2 }),
        json!({ "Members": [one], "Members@odata.count": "1" }),
        json!({ "Members": [one], "Members@odata.nextLink": "/s?skip=1" }),
        json!({ "Members": [one, {}] }),
    ] {
        assert_eq!(said(odd.clone()), None, "{odd}");
    }
}
