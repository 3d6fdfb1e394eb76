//! One Compute Engine for all tests here, and a gateway over an instance of it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use picket_tests::peers::{ComputeEngine, GceInstance, GceRequest, GceUser};
use picket_tests::{Daemon, Fleet, Gateway, PeerError, Result, Told};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::scene::QUICK;

/// The role that is shipped: its permissions are what a user needs.
const ROLE: &str = include_str!("../../../../deploy/gcp/role.yaml");

/// It ends with this process.
pub async fn compute() -> Result<&'static ComputeEngine> {
    static COMPUTE: OnceCell<ComputeEngine> = OnceCell::const_new();
    COMPUTE.get_or_try_init(ComputeEngine::start).await
}

/// What the shipped role permits.
pub fn role() -> Vec<&'static str> {
    ROLE.lines().filter_map(|line| line.strip_prefix("- ")).collect()
}

/// Who may do all of that.
pub async fn picket() -> Result<GceUser> {
    compute().await?.user(&role()).await
}

/// A file that nobody else may read.
pub fn private(path: &Path) -> Result<()> {
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, mode).map_err(PeerError::io("chmod a key"))
}

/// Somebody else's hand, by the instance's name: `stop`.
pub async fn by_hand(instance: &GceInstance, verb: &str, with: Option<&Value>) -> Result<u16> {
    let compute = compute().await?;
    let token = compute.token(&compute.user(&["*"]).await?).await?;
    let path = format!("zones/{}/instances/{}/{verb}", instance.zone, instance.name);
    let answered = compute.bare(&token, "POST", &path, with).await?;
    Ok(answered.map_or(0, |(status, _)| status))
}

/// How a scene shall be.
pub struct Plan {
    rules: String,
    releases: String,
    device: String,
    endpoint: Option<String>,
}

impl Plan {
    pub fn new() -> Self {
        let releases = "[releases.volumes]\nkind = \"volumes\"\nsettle = \"0s\"\n".to_owned();
        Self { rules: QUICK.to_owned(), releases, device: String::new(), endpoint: None }
    }

    /// With further lines among the rules.
    pub fn rules(mut self, lines: &str) -> Self {
        self.rules += lines;
        self
    }

    /// With further lines of the release.
    pub fn releasing(mut self, lines: &str) -> Self {
        self.releases += lines;
        self
    }

    /// Whoever asks may also vouch that a node is off.
    pub fn trusting(mut self) -> Self {
        for role in ["admin", "attest"] {
            self.releases += &format!("[roles.{role}]\nrole = \"{role}\"\ncallers = [\"uid:*\"]\n");
        }
        self
    }

    /// With further lines of the device.
    pub fn device(mut self, lines: &str) -> Self {
        self.device += lines;
        self
    }

    /// Over another Compute Engine than the one for all.
    pub fn elsewhere(self, endpoint: String) -> Self {
        Self { endpoint: Some(endpoint), ..self }
    }

    /// By whom may do all that the shipped role permits.
    pub async fn over(self, instance: &GceInstance) -> Result<Scene> {
        let user = picket().await?;
        self.by(&user, instance).await
    }

    /// By that one.
    pub async fn by(self, user: &GceUser, instance: &GceInstance) -> Result<Scene> {
        let key = compute().await?.service_account_file(user)?;
        private(&key)?;
        self.with(&key, &[], instance).await
    }

    /// By whom that file says; every device was looked at when it returns.
    pub async fn with(
        self,
        file: &Path,
        variables: &[(&str, &str)],
        instance: &GceInstance,
    ) -> Result<Scene> {
        let compute = compute().await?;
        let mut gateway = Gateway::of(Daemon::Shipped, &self.fleet(compute, file, instance))?;
        gateway.begin(variables).await?;
        gateway.checked().await?;
        Ok(Scene { gateway, compute, instance: instance.clone() })
    }

    /// The settings of its gateway, by a template as it serves a whole cluster.
    pub fn fleet(self, compute: &ComputeEngine, file: &Path, instance: &GceInstance) -> Fleet {
        let file = match file.as_os_str().is_empty() {
            true => String::new(),
            false => format!("credentials_file = {file:?}\n"),
        };
        let text = format!(
            "{}{}[nodes.n1]\ntemplate = \"vms\"\nprovider_id = {:?}\n[nodes.n1.devices.gce]\nid = {:?}\n\
             [templates.vms]\nlevels = [[\"gce\"]]\nreleases = [\"volumes\"]\n[templates.vms.devices.gce]\ndriver = \"gcp\"\n\
             instance = \"{{provider_id}}\"\nendpoint = {:?}\n{file}{}",
            self.rules,
            self.releases,
            instance.provider_id(),
            instance.id,
            self.endpoint.unwrap_or_else(|| compute.endpoint()),
            self.device,
        );
        Fleet::new().with(&text)
    }
}

/// A gateway over one node, n1, which is an instance.
pub struct Scene {
    pub gateway: Gateway,
    pub compute: &'static ComputeEngine,
    pub instance: GceInstance,
}

impl Scene {
    pub fn id(&self) -> &str {
        &self.instance.id
    }

    pub async fn fence(&self) -> Result<Told> {
        self.gateway.tells("fence", "n1").await
    }

    pub async fn unfence(&self) -> Result<Told> {
        self.gateway.tells("unfence", "n1").await
    }

    /// Somebody else's hand, by the instance's name: `stop`.
    pub async fn by_hand(&self, verb: &str) -> Result<u16> {
        by_hand(&self.instance, verb, None).await
    }

    /// Fences it: proven off, with everything released, and nothing was asked that Google's document does not allow.
    pub async fn must_fence(&self) -> Result<Told> {
        let told = self.fence().await?;
        self.is_fenced(&told).await?;
        Ok(told)
    }

    pub async fn is_fenced(&self, told: &Told) -> Result<()> {
        assert!(told.is_fenced(), "{told:#?}\n{}", self.gateway.log());
        assert_eq!(told.result["evidence"]["grade"], "hypervisor", "{:#?}", told.result);
        assert_eq!(self.compute.state(self.id()).await?, "TERMINATED");
        self.lawful().await
    }

    /// What came was what the document allows, and every command named the numeric id.
    pub async fn lawful(&self) -> Result<()> {
        let asked = self.compute.asked(self.id()).await?;
        let wrong: Vec<_> = asked.iter().filter(|one| one.violation.is_some()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        // Other people's commands have no name of their own.
        let name = format!("/instances/{}/", self.instance.name);
        let by_name = |one: &&GceRequest| one.field("requestId").is_some() && one.path.contains(&name);
        let by_name: Vec<_> = asked.iter().filter(by_name).collect();
        assert!(by_name.is_empty(), "{by_name:#?}");
        Ok(())
    }

    /// Fences it: its levels are spent, a person must decide, and nothing of it was let go.
    pub async fn fence_in_vain(&self, reason: &str) -> Result<Told> {
        let told = self.fence().await?;
        assert_eq!((told.kind(), told.reason()), ("needs_operator", reason), "{}", self.gateway.log());
        self.nothing_let_go().await?;
        Ok(told)
    }

    pub async fn nothing_let_go(&self) -> Result<()> {
        assert!(self.compute.asked_to("instances.detachDisk", self.id()).await?.is_empty());
        for disk in self.instance.disks.values() {
            let told = self.compute.disk(disk).await?;
            assert!(told.detached.is_none() && !told.users.is_empty(), "{disk}: {told:?}");
        }
        Ok(())
    }

    /// The stops of it that came, each without a graceful shutdown, under a name and with a token.
    pub async fn stops(&self) -> Result<Vec<GceRequest>> {
        let mut stops = self.compute.asked_to("instances.stop", self.id()).await?;
        // Other people's are told by its name.
        stops.retain(|stop| stop.path.ends_with(&format!("/instances/{}/stop", self.id())));
        for stop in &stops {
            assert_eq!(stop.field("noGracefulShutdown"), Some("true"), "{stop:?}");
            assert!(stop.field("requestId").is_some_and(|name| name.len() == 36), "{stop:?}");
        }
        Ok(stops)
    }

    /// The same, and none was asked for before it was proven off, by the time at which Compute Engine heard it.
    pub async fn detached_once_proven(&self, told: &Told, times: usize) -> Result<()> {
        self.detached_while_off(times).await?;
        let proven = told.proven_at_seconds().unwrap_or_else(|| panic!("it was not proven: {told:#?}"));
        let asked = self.compute.asked_to("instances.detachDisk", self.id()).await?;
        assert!(asked.iter().all(|one| one.came > proven), "{proven}: {asked:#?}");
        Ok(())
    }

    /// So many disks of it were let go, none of them twice, each while it was off, as what really happened says; and the root stayed.
    pub async fn detached_while_off(&self, times: usize) -> Result<()> {
        let events = self.compute.events(self.id()).await?;
        let mut is_off = false;
        let mut devices = Vec::new();
        for event in &events {
            match event.what.as_str() {
                "off" => is_off = true,
                "on" => is_off = false,
                "detached" => {
                    assert!(is_off, "{event:?} while it was on: {events:#?}");
                    devices.push(event.device.clone().unwrap_or_default());
                }
                _ => {}
            }
        }
        devices.sort();
        let all = devices.len();
        devices.dedup();
        assert_eq!((devices.len(), all), (times, times), "{events:#?}");
        let left = self.compute.truth(self.id()).await?.devices;
        assert!(left.iter().any(|device| device == "persistent-disk-0"), "the root stays: {left:?}");
        // And each was asked for after an answer that said off.
        let off = events.iter().find(|event| event.what == "off").map(|event| event.at);
        for one in self.compute.asked_to("instances.detachDisk", self.id()).await? {
            assert!(off.is_some_and(|off| one.came > off), "{one:?}");
            assert_ne!(one.field("deviceName"), Some("persistent-disk-0"));
        }
        Ok(())
    }
}
