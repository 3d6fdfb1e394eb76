//! `cargo xtask bench`: measures, beside what others wrote.

use std::ffi::OsString;

use crate::failure::Failure;
use crate::packages::{self, Package};
use crate::{etcd, kubernetes, openstack, place, python, run};

/// The variables by which what is measured finds its peers.
type Variables = Vec<(&'static str, OsString)>;

/// One bench of `tests/benches`.
struct Bench {
    name: &'static str,
    about: &'static str,
    needs: &'static [Package],
    /// What it wants besides, by the variables that name it.
    peers: fn() -> Result<Variables, Failure>,
    /// How it is built.
    built: &'static [&'static str],
}

/// Optimised, as what is released.
const RELEASED: &[&str] = &["--profile", "bench", "--package", "picket-tests"];
/// As the tests, and with them: for what counts requests and waits for others. The clients of clouds take a quarter of an hour to optimise,
/// and minutes to build once more with other features.
const AS_TESTED: &[&str] = &["--profile", "dev", "--workspace"];

fn nothing() -> Result<Variables, Failure> {
    Ok(Vec::new())
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "ipmi",
        about: "a confirmed off over IPMI: packets, latency, 64 and 512 at once, beside ipmipower and powerman",
        needs: packages::FOR_BENCH_IPMI,
        peers: nothing,
        built: RELEASED,
    },
    Bench {
        name: "fleet",
        about: "up to 10,000 BMCs at once: status and off, dead ones, loss, memory, start, beside ipmipower and powerman",
        needs: packages::FOR_BENCH_FLEET,
        peers: nothing,
        built: RELEASED,
    },
    Bench {
        name: "server",
        about: "the service over 10,000 nodes: reads, watchers, memory, fences, beside a plain echo and a bare store",
        needs: packages::FOR_BUILD,
        peers: nothing,
        built: RELEASED,
    },
    Bench {
        name: "ha",
        about: "three gateways over etcd: killed or stopped to the next word to the BMC, and fences beside the embedded store",
        needs: packages::FOR_BENCH_HA,
        peers: || Ok(vec![("PICKET_TEST_ETCD", etcd::present()?.into())]),
        built: RELEASED,
    },
    Bench {
        name: "cloud",
        about: "up to 1,000 instances of clouds at once: requests for each, and time by the limits, beside their fence agents",
        needs: packages::FOR_BENCH_CLOUD,
        peers: || {
            Ok(vec![
                ("PICKET_TEST_AWS", python::aws()?.into()),
                ("PICKET_TEST_GCP", python::gcp()?.into()),
                ("PICKET_TEST_OPENSTACK", openstack::environment()?.into()),
            ])
        },
        built: AS_TESTED,
    },
    Bench {
        name: "kubernetes",
        about: "a kubelet killed to its pod's running elsewhere, step by step, beside the taint by hand, and a reboot and flush",
        needs: packages::FOR_BENCH_KUBERNETES,
        peers: || {
            kubernetes::may_run()?;
            Ok(vec![
                ("PICKET_TEST_ETCD", etcd::present()?.into()),
                ("PICKET_TEST_KUBERNETES", kubernetes::programs()?.into()),
                ("PICKET_TEST_PYTHON", python::environment()?.into()),
            ])
        },
        built: AS_TESTED,
    },
];

/// Runs the bench of that name with its own options; without a name tells which there are.
pub fn bench(yes: bool, name: Option<&str>, options: &[String]) -> Result<(), Failure> {
    let list =
        || BENCHES.iter().map(|bench| format!("  {:<10}{}\n", bench.name, bench.about)).collect::<String>();
    let Some(name) = name else {
        println!("benches:\n\n{}\ncargo xtask bench NAME --help tells the options of one", list());
        return Ok(());
    };
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == name) else {
        return Err(Failure::new(format!("no such bench: {name}; there are\n\n{}", list())));
    };
    packages::ensure(bench.needs, yes)?;
    let mut command = place::cargo();
    command.args(["bench", "--locked"]).args(bench.built).args(["--bench", bench.name, "--"]).args(options);
    command.env("PATH", place::search_path()).envs((bench.peers)()?);
    run::shown(command)
}
