//! A release's program and all that it started end with its attempt, whatever became of the gateway that started it (S8).

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use picket_tests::peers::{EtcdCluster, IpmiSim, eventually};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, Gateways, PeerError, Result, one_of_several};
use rustix::fs::{Mode, OFlags, open};

use crate::ha::trio::{PATIENCE, RULES};

/// The first run starts what would detach late, in four ways, and hangs; those after it are done at once.
const DETACH: &str = r#"#!/bin/sh
cd "$(dirname "$0")" && cat > asked
mkdir first 2> /dev/null || exit 0
late='read -r go < go && echo late >> detached'
sh -c "$late" &
timeout 1000 sh -c "$late" &
setsid sh -c "$late" &
(setsid sh -c "sh -c '$late' & sh -c '$late'" &) &
: > begun
sh -c "$late"
"#;

/// The program, and what it does.
struct Detach {
    home: tempfile::TempDir,
}

impl Detach {
    fn new() -> Self {
        let detach = Self { home: tempfile::tempdir().expect("a directory") };
        std::fs::write(detach.at("detach"), DETACH).expect("written");
        std::fs::set_permissions(detach.at("detach"), std::fs::Permissions::from_mode(0o700))
            .expect("executable");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, detach.at("go"), fifo, Mode::RWXU, 0).expect("a pipe");
        detach
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A node behind that BMC, whose volumes it detaches.
    fn fleet(&self, bmc: &IpmiSim) -> Fleet {
        let program = self.at("detach");
        Fleet::new().with(RULES).node("n1", &Bmc::simulated(bmc.address()), &["detach"]).with(&format!(
            "[releases.detach]\nkind = \"command\"\nprogram = {program:?}\nattempt = \"10s\"\nmax_life = \"1s\"\nsettle = \"0s\""
        ))
    }

    async fn begun(&self) -> Result<()> {
        eventually("the program runs", PATIENCE, || self.at("begun").exists()).await
    }

    /// Nothing of the first run waits for its turn to detach.
    fn is_dead(&self) {
        // A pipe that nobody reads, or waits to read, cannot be opened for writing.
        let read = open(self.at("go"), OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty());
        assert_eq!(read.err(), Some(rustix::io::Errno::NXIO), "something of the first run would detach now");
        assert!(!self.at("detached").exists());
    }
}

#[tokio::test]
async fn of_a_gateway_that_was_killed_no_release_s_program_goes_on() -> Result<()> {
    let (bmc, detach) = (IpmiSim::builder().holds().start().await?, Detach::new());
    let mut gateway = Gateway::of(Daemon::Shipped, &detach.fleet(&bmc))?;
    gateway.begin(&[]).await?;
    gateway.checked().await?;
    let asked = gateway.asking("fence", "n1")?;
    detach.begun().await?;
    gateway.kill();
    drop(asked);
    gateway.begin(&[]).await?;
    let fenced = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    let back = gateway.picket(&["unfence", "n1", "--yes", "--reason", "over"]).await?;
    assert!(back.code == 0 && bmc.is_on()?, "{back:?}\n{}", gateway.log());
    detach.is_dead();
    Ok(())
}

#[tokio::test]
async fn of_a_leader_that_stands_still_no_release_s_program_goes_on_once_the_node_is_on() -> Result<()> {
    let (etcd, bmc, detach) =
        (EtcdCluster::start(1).await?, IpmiSim::builder().holds().start().await?, Detach::new());
    let gateway = |n| Gateway::of(Daemon::Shipped, &detach.fleet(&bmc).with(&one_of_several(n, &etcd, "3s")));
    let mut gateways = Gateways::start(vec![gateway(0)?, gateway(1)?], &[], &[]).await?;
    let fence = gateways.asking(&["fence", "n1", "--yes", "--reason", "a test", "--key", "there"])?;
    detach.begun().await?;
    gateways[0].process()?.freeze();
    let fenced = gateways.end(fence).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateways.logs());
    let back = gateways.said(&["unfence", "n1", "--yes", "--reason", "over"]).await?;
    assert_eq!(back.code, 0, "{back:?}\n{}", gateways.logs());
    if !bmc.is_on()? {
        return Err(PeerError::Malformed { path: "the BMC".into(), what: format!("it is off: {back:?}") });
    }
    detach.is_dead();
    gateways[0].process()?.thaw();
    gateways.until_succeeded().await?;
    detach.is_dead();
    Ok(())
}
