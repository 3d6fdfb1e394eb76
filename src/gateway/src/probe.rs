//! `picketd probe`: asks the devices of the settings once, and says what they answered. `picket init`
//! begins with it.
//!
//! **Non-goals.** No store is opened and nobody leads: the gateway of the same settings may run meanwhile.
//!
//! # Invariants
//!
//! - Each call may only read ([`Call::reading`]), so no driver sends anything that changes power or a hold.
//!   Shown by `a_device_is_asked_by_calls_that_may_only_read`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use picket_config::{Settings, Sources};
use picket_core::ids::DeviceId;
use picket_driver::{Call, Context, DriverError, ErrorKind, PowerDriver};
use picket_engine::NodePlan;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::build;
use crate::drivers::Drivers;
use crate::failure::Failure;

/// So many devices are asked side by side.
const AT_ONCE: usize = 16;
/// Waits for the answer to the end of a session. A BMC whose answer is lost ends it by itself.
const CLOSING: Duration = Duration::from_secs(2);

/// Asks all devices of the settings, and prints the answers: as one JSON document, or a paragraph for each device.
///
/// # Errors
/// The settings are wrong, and nothing was sent; or a device could not be used for a fence, which its answer says.
pub(crate) fn run(config: &Path, as_json: bool, context: &Context) -> Result<(), Failure> {
    let (settings, told) = Settings::read(&Sources::at(config)).map_err(Failure::Settings)?;
    let drivers = Drivers::default();
    let nodes = build::all(&settings, told, context, &drivers).map_err(Failure::Settings)?.nodes;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answers = runtime.map_err(Failure::Start)?.block_on(answers(&nodes, context));
    let text = match as_json {
        true => format!("{:#}\n", json!({ "devices": answers })),
        false => answers.iter().map(told_of).collect(),
    };
    print!("{text}");
    let unready = answers.iter().filter(|answer| !is_ready(answer)).count();
    match unready {
        0 => Ok(()),
        _ => Err(Failure::Unready { unready, all: answers.len() }),
    }
}

async fn answers(nodes: &[NodePlan], context: &Context) -> Vec<Value> {
    let devices = nodes.iter().flat_map(|node| {
        node.topology.devices().filter_map(move |spec| {
            let driver = node.drivers.get(&spec.id)?;
            Some((node, spec.id.clone(), spec.call, driver.clone()))
        })
    });
    let asked = devices.map(|(node, id, time, driver)| async move {
        let found = ask(&*driver, time, context).await;
        found.told(node, &id, &driver)
    });
    stream::iter(asked).buffered(AT_ONCE).collect().await
}

/// What a device answered; `fault` is where it stopped.
#[derive(Debug, Default)]
struct DeviceAnswer {
    power: Option<Value>,
    identity: Option<Value>,
    hold: Option<Value>,
    fault: Option<DriverError>,
}

/// Power first: a device that refuses the login is asked once.
async fn ask(driver: &dyn PowerDriver, time: Duration, context: &Context) -> DeviceAnswer {
    let call = || Call::reading(Instant::now() + time, context.clock.clone());
    let mut found = DeviceAnswer::default();
    let mut read = driver.read_power(&call()).await;
    // A slow BMC goes on with its login in the second call.
    if read.as_ref().is_err_and(|error| error.kind == ErrorKind::TimedOut) {
        read = driver.read_power(&call()).await;
    }
    match read {
        Ok(reading) => found.power = Some(json!(reading.power)),
        Err(fault) => return DeviceAnswer { fault: Some(fault), ..found },
    }
    match driver.identify(&call()).await {
        Ok(said) => found.identity = Some(json!(said.identity)),
        Err(error) if error.kind == ErrorKind::Unsupported => {}
        Err(fault) => found.fault = Some(fault),
    }
    match driver.inspect_hold(&call()).await {
        Ok(hold) => found.hold = Some(json!(hold)),
        Err(error) if error.kind == ErrorKind::Unsupported => {}
        Err(fault) => found.fault = found.fault.or(Some(fault)),
    }
    // The session carried no command, so its end matters to nobody but the BMC, which has few of them.
    let _ = driver.quiesce(&Call::reading(Instant::now() + CLOSING, context.clock.clone())).await;
    found
}

impl DeviceAnswer {
    fn told(self, node: &NodePlan, device: &DeviceId, driver: &Arc<dyn PowerDriver>) -> Value {
        let fault =
            self.fault.map(|fault| json!({ "kind": fault.kind.metric_label(), "detail": fault.detail }));
        json!({
            "node": node.id,
            "device": device,
            "endpoint": driver.traits().endpoint,
            "power": self.power,
            "identity": self.identity,
            "hold": self.hold,
            "notes": driver.remarks(),
            "obstacles": driver.obstacles(),
            "fault": fault,
        })
    }
}

/// It answered, and nothing that it said keeps a fence from its end.
fn is_ready(answer: &Value) -> bool {
    answer["fault"].is_null() && answer["obstacles"].as_array().is_none_or(Vec::is_empty)
}

fn told_of(answer: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| -> Vec<String> { value.as_array().into_iter().flatten().map(text).collect() };
    let mut out =
        format!("{}/{}: {}\n", text(&answer["node"]), text(&answer["device"]), text(&answer["endpoint"]));
    let mut line = |what: &str, said: &str| out += &format!("  {what}: {said}\n");
    if let Some(power) = answer["power"].as_str() {
        line("power", power);
    }
    for key in ["uuid", "serial"] {
        if let Some(said) = answer["identity"][key].as_str() {
            line(key, said);
        }
    }
    if let Some(hold) = answer["hold"].as_object() {
        let settings: Vec<String> =
            hold.iter().map(|(key, value)| format!("{key} {}", text(value))).collect();
        let settings =
            if settings.is_empty() { "nothing: there is none".to_owned() } else { settings.join(", ") };
        line("a hold would try to change", &settings);
    }
    list(&answer["notes"]).iter().for_each(|note| line("note", note));
    list(&answer["obstacles"]).iter().for_each(|obstacle| line("obstacle", obstacle));
    if let Some(fault) = answer["fault"].as_object() {
        let part = |key: &str| fault.get(key).map(text).unwrap_or_default();
        line("fault", &format!("{}: {}", part("kind").replace('_', " "), part("detail")));
    }
    out
}

#[cfg(test)]
mod tests;
