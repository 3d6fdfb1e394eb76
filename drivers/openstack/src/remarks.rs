//! What whoever runs a server ought to know of it, found out by a check.

use parking_lot::{Mutex, MutexGuard};
use picket_driver::Call;
use serde_json::Value;

use crate::cloud::{QueryResult, Service};
use crate::driver::OpenstackDriver;
use crate::hold;
use crate::refusals::way_out;
use crate::server::Server;

/// An image's property: how long a stop waits for the guest before its power is cut.
const SHUTDOWN: &str = "os_shutdown_timeout";

/// What the last check found.
#[derive(Debug, Default)]
pub(crate) struct Remarks(Mutex<Known>);

/// What was found, by whom it is looked for.
#[derive(Debug, Default)]
struct Known {
    by_check: Vec<String>,
    /// What keeps a fence from its end.
    barred: Vec<String>,
    /// A copy that an evacuation left, by whoever asked last where the server runs.
    left: Option<String>,
}

impl Remarks {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock()
    }

    pub(crate) fn told(&self) -> Vec<String> {
        let known = self.known();
        known.by_check.iter().chain(&known.left).cloned().collect()
    }

    pub(crate) fn obstacles(&self) -> Vec<String> {
        self.known().barred.clone()
    }

    /// What a reading says, and with it a copy that was left: that one's power is not read.
    pub(crate) fn with_left(&self, words: String) -> String {
        match &self.known().left {
            Some(left) => format!("{words}; {left}"),
            None => words,
        }
    }

    fn set(&self, remarks: Vec<String>, barred: Vec<String>) {
        let mut known = self.known();
        (known.by_check, known.barred) = (remarks, barred);
    }

    /// Where a copy of the server is left, if one is.
    pub(crate) fn found_left(&self, left: Option<String>) {
        self.known().left = left;
    }
}

impl OpenstackDriver {
    /// Looks at what makes a stop slow, or a proof weaker. What cannot be found out is no fault.
    pub(crate) async fn look_around(&self, server: &Server, call: &Call) {
        let mut remarks = Vec::new();
        if self.shutdown_timeout(server, call).await.is_some_and(|timeout| timeout.is_none()) {
            remarks.push(format!(
                "its image has no {SHUTDOWN}=0: a stop waits for a guest that is dead as long as Nova's shutdown_timeout says (60 s as \
                 it comes); set it on the image, or on the volume from which the server was booted, and rebuild"
            ));
        }
        if server.status.as_deref() == Some("ERROR") {
            remarks.push(format!(
                "it is in ERROR: Nova stops such a server all the same, and says SHUTOFF of it then; openstack server reboot --hard {} \
                 ends that before",
                server.id
            ));
        }
        let Some(token) = self.cloud.held(call.now()) else { return };
        if server.host_status.is_none() {
            remarks.push(
                "Nova does not show this user whether the compute host is up (host_status is an administrator's): Off is proven by \
                 our own stop's finished action, and where the host is dead a person is asked"
                    .to_owned(),
            );
        }
        if self.settings.hold && !token.said.is_admin() {
            remarks.push("a tenant's lock binds the tenant itself: the server is locked once its last release is complete".to_owned());
        }
        if self.settings.hold && hold::locks_as_owner(server, &token) {
            remarks.push(format!("{}: log in to another project", hold::OWNERS));
        }
        let barred = match self.locked_by_another(server, &token, call).await {
            Ok(barred) => barred,
            Err(error) => {
                remarks.push(format!("it is locked, and who locked it could not be asked: {}", error.detail));
                None
            }
        };
        self.remarks.set(remarks, way_out(server).into_iter().chain(barred).collect());
    }

    /// The image's timeout: `Some(None)`: it has none; `None`: that is not known.
    async fn shutdown_timeout(&self, server: &Server, call: &Call) -> Option<Option<String>> {
        let of = |properties: &Value| {
            let value = properties.get(SHUTDOWN)?;
            Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)).filter(|text| text == "0")
        };
        if server.is_by_volume() {
            return self.root_image(server, call).await.map(|properties| of(&properties));
        }
        if let Some(properties) = server.image.get("properties") {
            return Some(of(properties));
        }
        let image = server.image.get("id")?.as_str()?;
        // An image that is gone tells nothing of the servers made of it.
        match self.cloud.get::<Value>(Service::Image, &format!("/v2/images/{image}"), call).await {
            Ok(QueryResult::It(image)) => Some(of(&image)),
            _ => None,
        }
    }
}
