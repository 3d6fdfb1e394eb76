//! Three gateways over one etcd, to which a machine is known by its UUID and has another name than its Node.

use std::net::IpAddr;

use picket_tests::peers::{EtcdCluster, IpmiSim, fresh_address};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, Gateways, PeerError, Result, one_of_several};
use uuid::Uuid;

use crate::controller::scene::{BOARD, Controller, OURS, Scene, write};

const RELEASES: &str = include_str!("../../../../deploy/kubernetes/release.yaml");
/// As the gateways call the machine of the Node `n1`.
pub const NODE: &str = "rack1-n1";
const COUNT: usize = 3;
/// Where the first of them listens; the gateway of a [`Scene`] listens before it.
const FIRST: usize = 7_071;

/// A cluster, and the gateways before it, of which `g0` leads to begin with. They let go what a Node holds by the shipped role.
pub struct Trio {
    /// First, so that they end first.
    pub gateways: Gateways,
    pub bmc: IpmiSim,
    pub scene: Scene,
    pub _etcd: EtcdCluster,
}

impl Trio {
    pub async fn open() -> Result<Self> {
        let mut scene = Scene::open().await?;
        scene.gateway.kill();
        let place = scene.cluster.place();
        let uuid = Uuid::now_v7();
        // A BMC says it in the other order of its bytes.
        let guid = u128::from_be_bytes(uuid.to_bytes_le());
        let bmc = IpmiSim::builder().within(place, BOARD).guid(guid).start().await?;
        scene.kubelets.claims("n1", &uuid.to_string()).await?;
        let IpAddr::V4(address) = fresh_address().ip() else { unreachable!("it is one of loopback") };
        let etcd = EtcdCluster::within(&[&place.by(address)]).await?;
        let system = scene.cluster.json(&["get", "namespace", "kube-system"]).await?;
        let uid = system["metadata"]["uid"].as_str().unwrap_or_default();
        let login = scene.cluster.account_by("picket-release", &[RELEASES]).await?;
        let board = Bmc::simulated(bmc.address()).with(&format!("identity = {{ uuid = \"{uuid}\" }}"));
        let gateways = (0..COUNT).map(|n| {
            let text = format!(
                "{}\n[rules]\ndwell = \"8s\"\n{OURS}[releases.pods]\nkind = \"kubernetes\"\nsettle = \"0s\"\n\
                 cluster_uid = {uid:?}\nkubeconfig = {login:?}\nfind_by = \"system_uuid\"\n",
                one_of_several(n, &etcd, "3s")
            );
            let fleet = Fleet::new().with(&text).node(NODE, &board, &["pods"]);
            let gateway = Gateway::within(place, Daemon::Shipped, &fleet)?;
            listens(&scene, &gateway, n)?;
            Ok(gateway)
        });
        let gateways = Gateways::start(gateways.collect::<Result<_>>()?, &[], &[]).await?;
        Ok(Self { gateways, bmc, scene, _etcd: etcd })
    }
}

/// By the certificates of the scene's own gateway, at a port of its own.
fn listens(scene: &Scene, gateway: &Gateway, n: usize) -> Result<()> {
    let failed = |source| PeerError::Io { what: "copy conf.d".to_owned(), source };
    let [from, to] = [scene.gateway.directory(), gateway.directory()].map(|home| home.join("conf.d"));
    let text = std::fs::read_to_string(from.join("tls.toml")).map_err(failed)?;
    assert!(text.contains(":7070\""), "{text}");
    std::fs::create_dir(&to).map_err(failed)?;
    write(&to.join("tls.toml"), &text.replace(":7070\"", &format!(":{}\"", FIRST + n)))
}

/// A controller that does what NodeHealthCheck asks for, by all three gateways, and names Nodes to them by their machines' UUIDs.
pub fn controller(scene: &Scene, identity: &str) -> Result<Controller> {
    let settings = scene.remediating(identity)?;
    let text = std::fs::read_to_string(&settings).unwrap_or_default();
    let (alone, address) = (format!("{:?}", scene.endpoints()), scene.cluster.place().address());
    assert!(text.contains(&alone), "{text}");
    let all: Vec<String> = (0..COUNT).map(|n| format!("https://{address}:{}", FIRST + n)).collect();
    let text = text.replace(&alone, &format!("{all:?}"));
    write(&settings, &text.replace("[kubernetes]", "select = \"system-uuid\"\n[kubernetes]"))?;
    scene.begin(identity, &settings)
}
