//! The compute service of a server's host: told to be down (`forced_down`) where that host is dead and
//! proven so, because Nova evacuates from no other. Only administrators may.
//!
//! # Invariants
//!
//! - An evacuation from a host that lives makes two writers. So a host is forced down under a release's
//!   permit alone, whose ground is a proof by the host's own machine.
//! - The service is put back where it was found otherwise: before a stop that the host is told again, and
//!   at unfence, whoever forced it. A retirement names it. Shown by
//!   `what_was_not_forced_down_before_the_hold_is_put_back_by_a_successor`.

use picket_cloud::Bound;
use picket_driver::{Call, DriverError, Effort, ErrorKind, HoldFound};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use crate::cloud::{Command, QueryResult, Service};
use crate::driver::OpenstackDriver;
use crate::hold::{SERVICE, UP};
use crate::power_commands::refused;
use crate::server::Server;

#[derive(Deserialize)]
struct Services {
    services: Vec<ComputeService>,
}

/// One of Nova's services.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ComputeService {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) forced_down: bool,
    /// `up` or `down`, by its reports.
    #[serde(default)]
    state: String,
}

impl OpenstackDriver {
    /// The compute service on that host; `None`: it is not told, or there is not exactly one.
    pub(crate) async fn compute_service(
        &self,
        host: &str,
        call: &Call,
    ) -> Result<Option<ComputeService>, DriverError> {
        let services = self.compute_services(&format!("&host={host}"), call).await?;
        Ok(<[ComputeService; 1]>::try_from(services).ok().map(|[one]| one))
    }

    /// The compute service that was not forced down before the hold, and is now: by its id.
    pub(crate) async fn forced_since(
        &self,
        found: &HoldFound,
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        let service = match (found.get(SERVICE), found.get(UP)) {
            (Some(service), _) => self
                .compute_services("", call)
                .await
                .map(|all| all.into_iter().find(|one| one.id == *service)),
            (None, Some(host)) => self.compute_service(host, call).await,
            (None, None) => return Ok(None),
        };
        match service {
            Ok(service) => Ok(service.filter(|service| service.forced_down).map(|service| service.id)),
            // Who may not see it never forced it down, either.
            Err(error) if error.kind == ErrorKind::Forbidden && !found.contains_key(SERVICE) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The compute service that was forced down since the hold was placed: by this process, or by one before it that Nova tells of.
    pub(crate) async fn forced_by_us(
        &self,
        found: &HoldFound,
        call: &Call,
    ) -> Result<Option<String>, DriverError> {
        let forced = self.services().forced.clone();
        match forced {
            Some(service) => Ok(Some(service)),
            None => self.forced_since(found, call).await,
        }
    }

    /// Nova says DOWN of a host whose service is forced down, also once that host lives again: what was forced since the hold is put back. True:
    /// it was just now. A late one costs nothing but another release's attempt, and is held to no time.
    pub(crate) async fn let_host_speak(&self, found: &HoldFound, call: &Call) -> bool {
        let put_back = match self.forced_by_us(found, call).await {
            Ok(None) => return false,
            Ok(Some(service)) => self.force_down(&service, false, None, call).await,
            Err(error) => Err(error),
        };
        match put_back {
            Ok(()) => {
                self.services().forced = None;
                true
            }
            Err(error) => {
                tracing::warn!(server = self.settings.server, %error, "its compute service may stay forced down");
                false
            }
        }
    }

    async fn compute_services(&self, of: &str, call: &Call) -> Result<Vec<ComputeService>, DriverError> {
        let path = format!("/os-services?binary=nova-compute{of}");
        match self.cloud.get::<Services>(Service::Compute, &path, call).await? {
            QueryResult::It(Services { services }) => Ok(services),
            QueryResult::NotThere(_) => Ok(Vec::new()),
        }
    }

    /// A host that is disabled is in MAINTENANCE, whether or not it lives: then its service's own reports say.
    pub(crate) async fn with_host(&self, server: Server, call: &Call) -> Result<Server, DriverError> {
        let Some(host) =
            server.host.as_ref().filter(|_| server.host_status.as_deref() == Some("MAINTENANCE"))
        else {
            return Ok(server);
        };
        let service = self.compute_service(host, call).await?;
        let lives = service.is_some_and(|service| service.state == "up" && !service.forced_down);
        Ok(Server { host_status: Some(if lives { "UP" } else { "DOWN" }.to_owned()), ..server })
    }

    /// Tells Nova that it is down, or that its own reports count again.
    pub(crate) async fn force_down(
        &self,
        service: &str,
        down: bool,
        bound: Option<Bound>,
        call: &Call,
    ) -> Result<(), DriverError> {
        let path = format!("/os-services/{service}");
        let body = Some(json!({ "forced_down": down }));
        let command =
            Command { service: Service::Compute, method: Method::PUT, path: &path, body, bound, taken: None };
        let mut effort = Effort::once();
        let told = self.cloud.tell(command, &self.unclear, &mut effort, call).await?;
        match told.code.as_u16() {
            200 => Ok(()),
            _ => Err(refused("forced_down", &told, &mut effort)),
        }
    }
}
