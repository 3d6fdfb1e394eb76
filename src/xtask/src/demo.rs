//! `cargo xtask demo`: builds the real programs and lets the demonstration (`tests/src/bin/picket-demo`) run them.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::failure::Failure;
use crate::{etcd, kubernetes, packages, place, run};

/// What of the gateway it shows: clouds take long to build, and it has none.
const FEATURES: &str = "picket-gateway/etcd,picket-gateway/ipmi,picket-gateway/redfish,picket-gateway/agent";

/// And of a cluster.
const CLUSTER_FEATURES: &str = "picket-gateway/ipmi,picket-gateway/kubernetes";

/// Which demonstration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demo {
    /// One gateway; `keep`: it runs on.
    One { keep: bool },
    /// Three gateways, of which the leader is killed in the middle of a fence.
    Ha,
    /// A real cluster; without `proof` nothing is switched off.
    Kubernetes { proof: bool },
}

/// Shows Picket. Ends with the demonstration's own exit code.
pub fn demo(yes: bool, which: Demo) -> Result<(), Failure> {
    let packages = match which {
        Demo::One { .. } => packages::FOR_DEMO,
        Demo::Ha => packages::FOR_DEMO_HA,
        Demo::Kubernetes { .. } => packages::FOR_DEMO_KUBERNETES,
    };
    packages::ensure(packages, yes)?;
    let peer = match which {
        Demo::One { .. } => None,
        Demo::Ha => Some(("PICKET_TEST_ETCD", etcd::present()?)),
        Demo::Kubernetes { .. } => {
            kubernetes::may_run()?;
            Some(("PICKET_TEST_KUBERNETES", kubernetes::programs()?))
        }
    };
    let etcd = matches!(which, Demo::Kubernetes { .. }).then(etcd::present).transpose()?;
    let features = if matches!(which, Demo::Kubernetes { .. }) { CLUSTER_FEATURES } else { FEATURES };
    let mut build = place::cargo();
    build.args(["build", "--locked"]);
    build.args(["--package", "picket-gateway", "--package", "picket-cli", "--package", "picket-tests"]);
    build.args(["--no-default-features", "--features", features]);
    build.args(["--bin", "picketd", "--bin", "picket", "--bin", "picket-demo"]);
    if matches!(which, Demo::Kubernetes { .. }) {
        build.args(["--package", "picket-controller", "--bin", "picket-controller"]);
    }
    run::shown(build)?;
    let built = place::built()?;
    let mut show = Command::new(built.join("picket-demo"));
    show.env("PATH", place::search_path()).env("PICKET_BIN_DIR", &built).envs(peer);
    // Who has run the tests has their Python; a newcomer has not, and neither does a demonstration.
    show.env("PICKET_TEST_PYTHON", "a newcomer's");
    show.envs(etcd.map(|etcd| ("PICKET_TEST_ETCD", etcd)));
    show.args(match which {
        Demo::One { keep: false } => &[][..],
        Demo::One { keep: true } => &["--keep"],
        Demo::Ha => &["--ha"],
        Demo::Kubernetes { proof: true } => &["--kubernetes"],
        Demo::Kubernetes { proof: false } => &["--kubernetes", "--without-proof"],
    });
    // In our place: its terminal, its signals and its exit code are the user's.
    Err(Failure::of("picket-demo")(show.exec()))
}
