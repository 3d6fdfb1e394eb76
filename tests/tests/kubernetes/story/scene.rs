//! One cluster in one cloud for all tests here, each of which has machines of its own; and a gateway as an operator would set it up.

use std::path::Path;
use std::time::{Duration, SystemTime};

use picket_tests::peers::{
    CsiCall, Database, Effect, Kubernetes, KubernetesMachine, OpenStack, Request, Who, until,
};
use picket_tests::{Daemon, Fleet, Gateway, PeerError, Result, Told};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};

/// What lets go what a Node holds.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
pub const WITHIN: Duration = Duration::from_secs(180);
/// Of the release of the pods: the least that is allowed.
pub const DEADLINE: Duration = Duration::from_secs(480);
/// What makes tests quick, and proves as much: the least that is allowed.
const QUICK: &str = "[rules]\ncloud_poll = \"1s\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"\n";
const ROLE: &str = include_str!("../../../../deploy/kubernetes/release.yaml");
const RULES: &str = include_str!("../../../../deploy/openstack/access-rules.json");

pub struct Scene {
    pub cluster: Kubernetes,
    pub cloud: OpenStack,
}

/// Both end with this process.
pub async fn scene() -> Result<&'static Scene> {
    static SCENE: OnceCell<Scene> = OnceCell::const_new();
    SCENE
        .get_or_try_init(async || {
            let (cluster, cloud) = Kubernetes::in_a_cloud(8).await?;
            Ok(Scene { cluster, cloud })
        })
        .await
}

/// Who attaches volumes is one for all: held by whoever puts it to sleep, and by whoever waits for it.
pub static ATTACHING: Mutex<()> = Mutex::const_new(());

/// A server, its guest, and the Node that the guest is.
pub fn server(machine: &KubernetesMachine) -> String {
    machine.server().expect("all machines are guests")
}

/// A database on one of two machines, whose kubelet is dead: the one, the other, and what still writes.
pub async fn stuck<'a>(
    scene: &'a Scene,
    name: &str,
    on: [&str; 2],
) -> Result<(&'a KubernetesMachine, &'a KubernetesMachine, Database<'a>)> {
    let Scene { cluster, cloud } = scene;
    let volume = cloud.volume(name).await?;
    let [one, other] = on.map(|name| cluster.machine(name));
    let database = cluster.database_upon(name, &volume, &[one, other]).await?;
    let here = database.node().await?.expect("it runs");
    let (here, there) = if one.name() == here { (one, other) } else { (other, one) };
    database.runs_on(here.name()).await?;
    scene.is_at(&volume, here).await?;

    here.kill_kubelet().await?;
    cluster.until_ready(here, false).await?;
    database.is_terminating().await?;
    database.still_writes(here.name()).await?;
    assert_eq!(cloud.look(&Who::Tenant, &server(here)).await?["status"], "ACTIVE");
    let attached = [("attach".to_owned(), server(here)), ("mount".to_owned(), here.name().to_owned())];
    assert_eq!(told(&database), attached, "nothing lets go by itself");
    Ok((here, there, database))
}

/// What the CSI driver did and where, in order; without what was refused.
pub fn told(database: &Database<'_>) -> Vec<(String, String)> {
    let done = database.csi_calls().into_iter().filter(|call| call.what != "refused");
    done.map(|CsiCall { what, node, .. }| (what, node)).collect()
}

impl Scene {
    /// Cinder has that volume at that machine's server, and nowhere else.
    pub async fn is_at(&self, volume: &str, machine: &KubernetesMachine) -> Result<()> {
        self.cloud.until_volume(volume, "in-use").await?;
        let told = self.cloud.ask(&Who::Tenant, "volume", json!({ "volume": volume })).await?;
        let at: Vec<&Value> =
            told["attachments"].as_array().into_iter().flatten().map(|one| &one["server_id"]).collect();
        assert_eq!(at, [&json!(server(machine))], "{told:#}");
        Ok(())
    }

    /// What the hypervisor did to a machine's server from the attachment on, in order.
    pub fn did(&self, machine: &KubernetesMachine) -> Result<Vec<Effect>> {
        let all = self.cloud.effects(&server(machine))?;
        Ok(all.into_iter().filter(|one| !one.did.ends_with(": begins") && one.did != "spawn").collect())
    }

    /// Who asked Nova to detach a volume from a server, when, and what was answered.
    pub fn detaches(&self, machine: &KubernetesMachine, volume: &str) -> Result<Vec<Asked>> {
        let path = format!("/servers/{}/os-volume_attachments/{volume}", server(machine));
        let is =
            |one: &Request| one.service == "compute" && one.method == "DELETE" && one.path.ends_with(&path);
        let all = self.cloud.requests()?.into_iter().filter(is);
        let asked = |one: Request| Asked {
            at: one.at,
            by_us: one.agent.starts_with("picket/"),
            status: one.answer.map_or(0, |answer| answer.status),
        };
        Ok(all.map(asked).collect())
    }

    /// The VolumeAttachments of a machine's Node.
    pub async fn attachments(&self, machine: &KubernetesMachine) -> Result<usize> {
        let all = self.cluster.json(&["get", "volumeattachments"]).await?;
        let of = |one: &&Value| one["spec"]["nodeName"] == machine.name();
        Ok(all["items"].as_array().into_iter().flatten().filter(of).count())
    }

    /// A gateway on the control plane's host over these machines: pods first, then what the cloud has attached still.
    pub async fn gateway(&self, who: Login, machines: &[&KubernetesMachine]) -> Result<Driven<'_>> {
        let home = tempfile::tempdir().map_err(PeerError::io("create a folder"))?;
        let rules: Vec<Value> = serde_json::from_str(RULES).expect("JSON");
        let who = match who {
            Login::Member => Who::Application(self.cloud.credential(&Who::Tenant, &unique(), &rules).await?),
            Login::Administrator => Who::Owner,
        };
        let clouds = home.path().join("clouds.yaml");
        write_secret(&clouds, &self.cloud.clouds_yaml(&who))?;
        let login = self.cluster.account_by(&unique(), &[ROLE]).await?;
        let system = self.cluster.json(&["get", "namespace", "kube-system"]).await?;
        let uid = system["metadata"]["uid"].as_str().unwrap_or_default();
        let mut text = format!(
            "{QUICK}\n[releases.pods]\nkind = \"kubernetes\"\ncluster_uid = {uid:?}\nkubeconfig = {login:?}\n\
             deadline = \"8m\"\n\
             [releases.volumes]\nkind = \"volumes\"\n\
             [templates.worker]\nlevels = [[\"nova\"]]\nreleases = [\"pods\", \"volumes\"]\n[templates.worker.devices.nova]\n\
             driver = \"openstack\"\nserver = \"{{provider_id}}\"\ncloud = \"cloud\"\nclouds_file = {clouds:?}\n"
        );
        for machine in machines {
            let (name, id) = (machine.name(), machine.provider_id().unwrap_or_default());
            text += &format!("[nodes.{name}]\ntemplate = \"worker\"\nprovider_id = {id:?}\n");
        }
        let fleet = Fleet::new().with(&text);
        let mut gateway = Gateway::within(self.cluster.place(), Daemon::Shipped, &fleet)?;
        gateway.begin(&[]).await?;
        gateway.checked().await?;
        Ok(Driven { gateway, scene: self, _home: home })
    }
}

/// A name that nobody else here has.
fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("picket-{}", LAST.fetch_add(1, Ordering::SeqCst))
}

fn write_secret(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(PeerError::io("write clouds.yaml"))?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, mode).map_err(PeerError::io("chmod clouds.yaml"))
}

/// With what a gateway logs in to the cloud.
pub enum Login {
    /// A member of the project, as the CSI driver is one: by an application credential with the shipped access rules.
    Member,
    /// Who sees hosts, and whose lock binds every member.
    Administrator,
}

/// A request to detach.
#[derive(Debug)]
pub struct Asked {
    pub at: SystemTime,
    /// By the gateway, and not by the CSI driver.
    pub by_us: bool,
    pub status: u16,
}

/// A running gateway.
pub struct Driven<'a> {
    pub gateway: Gateway,
    scene: &'a Scene,
    _home: TempDir,
}

impl Driven<'_> {
    /// Fences a machine's node; what `picket` told of it, and when it was proven off.
    pub async fn fence(&self, machine: &KubernetesMachine, more: &[&str]) -> Result<(Value, SystemTime)> {
        let fence = ["fence", machine.name(), "--yes", "--reason", "its kubelet is dead", "-o", "json"];
        let said = self.gateway.picket(&[&fence[..], &["--timeout", "170s"], more].concat()).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", self.gateway.log());
        let told = Told::of(&said)?;
        let proven = told.proven_at().unwrap_or_else(|| panic!("it was not proven: {told:#?}"));
        let server = server(machine);
        let look = self.scene.cloud.look(&Who::Tenant, &server).await?;
        assert_eq!(
            (&look["status"], &look["OS-EXT-STS:power_state"]),
            (&json!("SHUTOFF"), &json!(4)),
            "{look}"
        );
        assert!(!machine.runs() && self.scene.cloud.runs_on(&server)?.is_empty());
        Ok((told.result, proven))
    }

    /// Brings it back, and waits until nothing of ours is left of it.
    pub async fn unfence(&self, machine: &KubernetesMachine) -> Result<()> {
        let Scene { cluster, cloud } = self.scene;
        let boot = machine.boot_id();
        let said = self.gateway.picket(&["unfence", machine.name(), "--yes", "--reason", "mended"]).await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", self.gateway.log());
        let look = cloud.look(&Who::Tenant, &server(machine)).await?;
        assert_eq!((&look["status"], &look["locked"]), (&json!("ACTIVE"), &json!(false)), "{look}");
        cluster.until_ready(machine, true).await?;
        assert_ne!(machine.boot_id(), boot);
        until("its Node is as it was", WITHIN, async || Ok(is_clean(&cluster.node(machine).await?))).await
    }

    /// Waits until `picket status` says that of it.
    pub async fn says(&self, machine: &KubernetesMachine, what: &str) -> Result<()> {
        self.says_within(machine, what, WITHIN).await
    }

    /// The same, for so long.
    pub async fn says_within(&self, machine: &KubernetesMachine, what: &str, within: Duration) -> Result<()> {
        let mut last = String::new();
        let told = format!("it is told: {what}");
        let said = until(&told, within, async || {
            last = self.gateway.picket(&["status", machine.name()]).await?.out;
            Ok(last.contains(what))
        })
        .await;
        said.inspect_err(|_| println!("{last}\n{}", self.gateway.log()))
    }
}

/// The keys of a Node's taints.
pub fn taints(node: &Value) -> Vec<&str> {
    let taints = node["spec"]["taints"].as_array();
    taints.into_iter().flatten().filter_map(|taint| taint["key"].as_str()).collect()
}

/// Nothing of ours is left on it, and nothing that a dead kubelet brings with it.
fn is_clean(node: &Value) -> bool {
    let meta = &node["metadata"];
    let annotations = meta["annotations"].as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let mut ours = annotations.filter(|key| key.starts_with("picket.dev/") || key.contains("scale-down"));
    taints(node).is_empty() && ours.next().is_none() && meta["finalizers"].is_null()
}
