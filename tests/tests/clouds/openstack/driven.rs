//! A gateway over servers of the cloud, asked as an operator asks it.

use std::path::Path;
use std::time::SystemTime;

use picket_tests::peers::{Effect, OpenStack, Who};
use picket_tests::{Fleet, Gateway, PeerError, Result, Told};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::openstack::scene::cloud;
use crate::scene::QUICK;

/// So many gateways at once: the cloud below all of them is one, and would be too slow for more.
static TURNS: Semaphore = Semaphore::const_new(5);
/// How a scene shall be.
pub struct Plan {
    who: Who,
    servers: Vec<String>,
    rules: String,
    releases: String,
    /// Where Keystone is thought to be, at its address.
    keystone: &'static str,
    /// Further lines of the cloud in clouds.yaml.
    login: String,
    /// Further lines of each server's device.
    device: String,
    /// Each server's devices besides Nova, each a level, and other nodes.
    more: Vec<(String, String)>,
    nodes: String,
}

impl Plan {
    /// Nodes n1, n2 and so on, each a server; in that name.
    pub fn over(who: &Who, servers: &[&str]) -> Self {
        let servers = servers.iter().map(ToString::to_string).collect();
        let (rules, releases) =
            (String::new(), "[releases.volumes]\nkind = \"volumes\"\nsettle = \"0s\"\n".to_owned());
        let (login, device, more, nodes) = (String::new(), String::new(), Vec::new(), String::new());
        Self { who: who.clone(), servers, rules, releases, keystone: "/v3", login, device, more, nodes }
    }

    /// With further lines among the rules.
    pub fn rules(mut self, lines: &str) -> Self {
        self.rules += lines;
        self
    }

    /// With another path in auth_url.
    pub fn keystone(self, keystone: &'static str) -> Self {
        Self { keystone, ..self }
    }

    /// With a further line of the cloud in clouds.yaml.
    pub fn login(mut self, line: &str) -> Self {
        self.login += &format!("    {line}\n");
        self
    }

    /// With further lines of its device at Nova.
    pub fn device(mut self, lines: &str) -> Self {
        self.device += lines;
        self
    }

    /// With another level of one device, by its lines.
    pub fn then(mut self, device: &str, lines: &str) -> Self {
        self.more.push((device.to_owned(), lines.to_owned()));
        self
    }

    /// With further nodes.
    pub fn nodes(mut self, text: &str) -> Self {
        self.nodes += text;
        self
    }

    /// With further lines of the release.
    pub fn releasing(mut self, lines: &str) -> Self {
        self.releases += lines;
        self
    }

    /// Starts the gateway; every server was looked at when it returns.
    pub async fn start(self) -> Result<Driven<'static>> {
        let cloud = cloud().await?;
        self.start_on(cloud).await
    }

    /// The same on a cloud of the test's own.
    pub async fn start_on(self, cloud: &OpenStack) -> Result<Driven<'_>> {
        let turn = TURNS.acquire().await.expect("it is never closed");
        let home = tempfile::tempdir().map_err(PeerError::io("create a folder"))?;
        let fleet = self.fleet(cloud, home.path())?;
        let mut gateway = Gateway::new(&fleet)?;
        gateway.begin(&[]).await?;
        gateway.checked().await?;
        Ok(Driven { gateway, cloud, servers: self.servers, _home: home, _turn: turn })
    }

    /// Its settings, by a template as it serves a whole cluster, with the login in that folder.
    pub fn fleet(&self, cloud: &OpenStack, home: &Path) -> Result<Fleet> {
        let clouds = home.join("clouds.yaml");
        let text = cloud.clouds_yaml(&self.who).replace("/v3", self.keystone) + &self.login;
        std::fs::write(&clouds, text).map_err(PeerError::io("write clouds.yaml"))?;
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&clouds, mode).map_err(PeerError::io("chmod clouds.yaml"))?;
        let mut text = format!(
            "{QUICK}{}\n{}\n[templates.servers]\nreleases = [\"volumes\"]\n[templates.servers.devices.nova]\n\
             driver = \"openstack\"\nserver = \"{{provider_id}}\"\ncloud = \"cloud\"\nclouds_file = {clouds:?}\n{}\n",
            self.rules, self.releases, self.device
        );
        let levels: Vec<Vec<&str>> = std::iter::once("nova")
            .chain(self.more.iter().map(|(name, _)| name.as_str()))
            .map(|one| vec![one])
            .collect();
        for (number, server) in self.servers.iter().enumerate() {
            let node = format!("n{}", number + 1);
            text += &format!(
                "[nodes.{node}]\ntemplate = \"servers\"\nprovider_id = \"openstack:///{server}\"\nlevels = {levels:?}\n"
            );
            for (device, lines) in &self.more {
                text += &format!("[nodes.{node}.devices.{device}]\n{lines}\n");
            }
        }
        text += &self.nodes;
        Ok(Fleet::new().with(&text))
    }
}

/// A running gateway, and its servers.
pub struct Driven<'a> {
    pub gateway: Gateway,
    pub cloud: &'a OpenStack,
    pub servers: Vec<String>,
    _home: TempDir,
    _turn: SemaphorePermit<'static>,
}

impl Driven<'_> {
    /// Fences n1.
    pub async fn fence(&self) -> Result<Told> {
        self.fence_node("n1").await
    }

    pub async fn fence_node(&self, node: &str) -> Result<Told> {
        self.gateway.tells("fence", node).await
    }

    pub async fn unfence(&self) -> Result<Told> {
        let told = self.gateway.tells("unfence", "n1").await?;
        if told.code != 0 {
            println!("{}", self.gateway.log());
        }
        Ok(told)
    }

    /// Fences n1: proven off, with everything released.
    pub async fn must_fence(&self) -> Result<Told> {
        let told = self.fence().await?;
        self.is_fenced(&told);
        Ok(told)
    }

    /// Fences n1 in vain: a person must decide, for this reason.
    pub async fn fence_in_vain(&self, reason: &str) -> Result<Told> {
        let told = self.fence().await?;
        self.needs_operator(&told, reason);
        Ok(told)
    }

    pub fn is_fenced(&self, told: &Told) {
        assert!(told.is_fenced(), "{told:#?}\n{}", self.gateway.log());
    }

    pub fn needs_operator(&self, told: &Told, reason: &str) {
        let log = self.gateway.log();
        assert_eq!((told.kind(), told.reason()), ("needs_operator", reason), "{told:#?}\n{log}");
    }

    pub fn server(&self) -> &str {
        &self.servers[0]
    }

    /// What the hypervisor did with n1's server since it was made, in order.
    pub fn did(&self) -> Result<Vec<String>> {
        Ok(self.cloud.effects(self.server())?.into_iter().map(|effect| effect.did).collect())
    }

    /// Nothing was detached before the machine was off, by the hypervisor's own log.
    pub fn detached_while_off(&self, times: usize) -> Result<()> {
        let effects = self.cloud.effects(self.server())?;
        let detached: Vec<(usize, &Effect)> =
            effects.iter().enumerate().filter(|(_, effect)| effect.did == "detach").collect();
        assert_eq!(detached.len(), times, "{effects:#?}");
        for (at, _) in detached {
            let last = effects[..at]
                .iter()
                .rfind(|one| matches!(one.did.as_str(), "spawn" | "power_on" | "power_off"));
            assert_eq!(last.map(|one| one.did.as_str()), Some("power_off"), "{effects:#?}");
        }
        Ok(())
    }

    /// So many volumes were asked to be detached by us, and none before the machine was proven off: by the time at which Nova heard it.
    pub fn detached_once_proven(&self, told: &Told, times: usize) -> Result<()> {
        self.detached_while_off(times)?;
        let sent = self.sent("DELETE", &format!("{}/os-volume_attachments/", self.server()))?;
        let proven = told.proven_at().unwrap_or_else(|| panic!("it was not proven: {told:#?}"));
        assert!(sent.len() >= times && sent.iter().all(|(at, _, _)| *at > proven), "{proven:?}: {sent:#?}");
        Ok(())
    }

    /// What requests of that method and part of a path our own daemon sent.
    pub fn sent(&self, method: &str, path: &str) -> Result<Vec<(SystemTime, Value, u16)>> {
        let ours = |one: &picket_tests::peers::Request| {
            one.agent.starts_with("picket/") && one.method == method && one.path.contains(path)
        };
        let all = self.cloud.requests()?.into_iter().filter(ours);
        Ok(all.map(|one| (one.at, one.body.clone(), one.answer.map_or(0, |answer| answer.status))).collect())
    }

    /// How often our own daemon told the server's action something that begins so (`os-stop`).
    pub fn acted(&self, what: &str) -> Result<usize> {
        let told = self.sent("POST", &format!("/servers/{}/action", self.server()))?;
        Ok(told.iter().filter(|(_, body, _)| body.get(what).is_some()).count())
    }
}
