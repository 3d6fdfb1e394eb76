//! `cargo xtask demo`: builds the real programs and lets the demonstration (`tests/src/bin/picket-demo`) run them.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::failure::Failure;
use crate::{etcd, packages, place, run};

/// What of the gateway it shows: clouds take long to build, and it has none.
const FEATURES: &str = "picket-gateway/etcd,picket-gateway/ipmi,picket-gateway/redfish,picket-gateway/agent";

/// Shows Picket; `ha`: three gateways, of which the leader is killed in the middle of a fence. Ends with the demonstration's own
/// exit code.
pub fn demo(yes: bool, ha: bool, keep: bool) -> Result<(), Failure> {
    if ha && keep {
        return Err(Failure::new(
            "demo --ha ends what it started: --keep is for the demonstration without --ha",
        ));
    }
    packages::ensure(if ha { packages::FOR_DEMO_HA } else { packages::FOR_DEMO }, yes)?;
    let etcd = ha.then(etcd::present).transpose()?;
    let mut build = place::cargo();
    build.args(["build", "--locked"]);
    build.args(["--package", "picket-gateway", "--package", "picket-cli", "--package", "picket-tests"]);
    build.args(["--no-default-features", "--features", FEATURES]);
    build.args(["--bin", "picketd", "--bin", "picket", "--bin", "picket-demo"]);
    run::shown(build)?;
    let built = place::built()?;
    let mut show = Command::new(built.join("picket-demo"));
    show.env("PATH", place::search_path()).env("PICKET_BIN_DIR", &built);
    if let Some(etcd) = etcd {
        show.arg("--ha").env("PICKET_TEST_ETCD", etcd);
    }
    if keep {
        show.arg("--keep");
    }
    // In our place: its terminal, its signals and its exit code are the user's.
    Err(Failure::of("picket-demo")(show.exec()))
}
