//! `cargo xtask bench`: measures, beside what others wrote, in the release profile.

use crate::failure::Failure;
use crate::packages::{self, Package};
use crate::{etcd, place, run};

/// One bench of `tests/benches`.
struct Bench {
    name: &'static str,
    about: &'static str,
    needs: &'static [Package],
    /// Whether it wants etcd.
    etcd: bool,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "ipmi",
        about: "a confirmed off over IPMI: packets, latency, 64 and 512 at once, beside ipmipower and powerman",
        needs: packages::FOR_BENCH_IPMI,
        etcd: false,
    },
    Bench {
        name: "fleet",
        about: "up to 10,000 BMCs at once: status and off, dead ones, loss, memory, start, beside ipmipower and powerman",
        needs: packages::FOR_BENCH_FLEET,
        etcd: false,
    },
    Bench {
        name: "server",
        about: "the service over 10,000 nodes: reads, watchers, memory, fences, beside a plain echo and a bare store",
        needs: packages::FOR_BUILD,
        etcd: false,
    },
    Bench {
        name: "ha",
        about: "three gateways over etcd: killed or stopped to the next word to the BMC, and fences beside the embedded store",
        needs: packages::FOR_BENCH_HA,
        etcd: true,
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
    command
        .args(["bench", "--locked", "--package", "picket-tests", "--bench", bench.name, "--"])
        .args(options);
    command.env("PATH", place::search_path());
    if bench.etcd {
        command.env("PICKET_TEST_ETCD", etcd::present()?);
    }
    run::shown(command)
}
