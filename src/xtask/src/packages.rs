//! Debian packages that a task needs and the machine lacks.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::{place, run};

/// How to see whether a package is there.
#[derive(Clone, Copy, Debug)]
enum Sign {
    Program(&'static str),
    File(&'static str),
    PythonModule(&'static str),
}

/// A package, by what it is needed for.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    name: &'static str,
    sign: Sign,
}

const IPMI_SIM: Package = Package { name: "openipmi", sign: Sign::Program("ipmi_sim") };
const IPMI_SIM_HEADERS: Package =
    Package { name: "libopenipmi-dev", sign: Sign::File("/usr/include/OpenIPMI/mcserv.h") };
const QEMU: Package = Package { name: "qemu-system-x86", sign: Sign::Program("qemu-system-x86_64") };
const NASM: Package = Package { name: "nasm", sign: Sign::Program("nasm") };
/// Systems that boot, and their disks.
const MMDEBSTRAP: Package = Package { name: "mmdebstrap", sign: Sign::Program("mmdebstrap") };
const MKE2FS: Package = Package { name: "e2fsprogs", sign: Sign::Program("mke2fs") };
/// It tells what is in an .rpm.
const RPM: Package = Package { name: "rpm", sign: Sign::Program("rpm") };
/// What the programs of a package want of a system is read by it.
const READELF: Package = Package { name: "binutils", sign: Sign::Program("readelf") };
const COMPILER: Package = Package { name: "gcc", sign: Sign::Program("cc") };
const PYTHON: Package = Package { name: "python3", sign: Sign::Program("python3") };
const VENV: Package = Package { name: "python3-venv", sign: Sign::PythonModule("ensurepip") };
const IPMITOOL: Package = Package { name: "ipmitool", sign: Sign::Program("ipmitool") };
const IPMIPOWER: Package = Package { name: "freeipmi-tools", sign: Sign::Program("ipmipower") };
const FENCE_AGENTS: Package = Package { name: "fence-agents", sign: Sign::Program("fence_ipmilan") };
const SNMP: Package = Package { name: "snmp", sign: Sign::Program("snmpget") };
const SNMPD: Package = Package { name: "snmpd", sign: Sign::Program("snmpd") };
const POWERMAN: Package = Package { name: "powerman", sign: Sign::Program("powermand") };
/// Whom TLS believes: it goes into images.
const AUTHORITIES: Package =
    Package { name: "ca-certificates", sign: Sign::File("/etc/ssl/certs/ca-certificates.crt") };
/// deploy/three-machines makes certificates with it.
const OPENSSL: Package = Package { name: "openssl", sign: Sign::Program("openssl") };

/// Hosts with networks of their own, and cuts between them.
const NAMESPACES: Package = Package { name: "iproute2", sign: Sign::Program("ip") };
const CUTS: Package = Package { name: "iptables", sign: Sign::Program("iptables") };

/// Shells other than the machine's own: completions are read by them.
const ZSH: Package = Package { name: "zsh", sign: Sign::Program("zsh") };
const FISH: Package = Package { name: "fish", sign: Sign::Program("fish") };

/// A file system that is none of the machine's own.
const BINDFS: Package = Package { name: "bindfs", sign: Sign::Program("bindfs") };

/// Others who fence: `fence_picket` is run by them.
const PACEMAKER: Package =
    Package { name: "pacemaker", sign: Sign::File("/usr/lib/pacemaker/pacemaker-fenced") };
const STONITH_ADMIN: Package = Package { name: "pacemaker-cli-utils", sign: Sign::Program("stonith_admin") };

/// Machines with kubelets, and their pods.
const CONTAINERD: Package = Package { name: "containerd", sign: Sign::Program("containerd") };
const RUNC: Package = Package { name: "runc", sign: Sign::Program("runc") };
const POD_NETWORK: Package =
    Package { name: "containernetworking-plugins", sign: Sign::File("/usr/lib/cni/ptp") };

/// So that packages start no services: systemctl heeds the first, invoke-rc.d the second.
const NO_START: [&str; 2] = ["SYSTEMD_OFFLINE=1", "RUNLEVEL=1"];

/// What a build of the whole workspace needs besides Rust.
pub const FOR_BUILD: &[Package] = &[COMPILER];
/// What makes and boots the systems in which tests install packages.
pub const FOR_ROOTS: &[Package] = &[MMDEBSTRAP, MKE2FS, QEMU, RPM];
/// What a build of packages needs besides: zig comes as a Python package.
pub const FOR_PACKAGES: &[Package] = &[COMPILER, READELF, PYTHON, VENV];
/// What the demonstration needs: simulated BMCs before real machines.
pub const FOR_DEMO: &[Package] = &[IPMI_SIM, IPMI_SIM_HEADERS, QEMU, NASM, COMPILER, PYTHON];
/// What the demonstration of several gateways needs besides: where there is no Go, etcd's is of a Python package.
pub const FOR_DEMO_HA: &[Package] = &[IPMI_SIM, IPMI_SIM_HEADERS, QEMU, NASM, COMPILER, PYTHON, VENV];
/// What the demonstration of a cluster needs: machines with containers, behind simulated BMCs.
pub const FOR_DEMO_KUBERNETES: &[Package] = &[
    IPMI_SIM,
    IPMI_SIM_HEADERS,
    IPMITOOL,
    COMPILER,
    PYTHON,
    VENV,
    NAMESPACES,
    CUTS,
    CONTAINERD,
    RUNC,
    POD_NETWORK,
];
/// What the tests need besides: other people's clients, and a second BMC in Python.
pub const FOR_TESTS: &[Package] = &[
    IPMI_SIM,
    IPMI_SIM_HEADERS,
    QEMU,
    NASM,
    COMPILER,
    PYTHON,
    VENV,
    IPMITOOL,
    IPMIPOWER,
    FENCE_AGENTS,
    SNMP,
    SNMPD,
    NAMESPACES,
    CUTS,
    BINDFS,
    ZSH,
    FISH,
    AUTHORITIES,
    OPENSSL,
    PACEMAKER,
    STONITH_ADMIN,
    POWERMAN,
    CONTAINERD,
    RUNC,
    POD_NETWORK,
];
/// What the bench of the IPMI driver needs: BMCs, and the others in the race.
pub const FOR_BENCH_IPMI: &[Package] = &[IPMI_SIM, IPMI_SIM_HEADERS, COMPILER, IPMIPOWER, POWERMAN];
/// What the bench of thousands of BMCs needs, which are our own.
pub const FOR_BENCH_FLEET: &[Package] = &[COMPILER, IPMIPOWER, POWERMAN, FENCE_AGENTS];
/// What the bench of several gateways needs: a BMC and etcd.
pub const FOR_BENCH_HA: &[Package] = &[IPMI_SIM, IPMI_SIM_HEADERS, COMPILER, PYTHON, VENV];

/// What the bench of clouds needs: their fence agents.
pub const FOR_BENCH_CLOUD: &[Package] = &[COMPILER, PYTHON, VENV, FENCE_AGENTS];

/// What the bench of a cluster needs besides the demonstration: the agent that others fence by.
pub const FOR_BENCH_KUBERNETES: &[Package] = &[
    IPMI_SIM,
    IPMI_SIM_HEADERS,
    IPMITOOL,
    COMPILER,
    PYTHON,
    VENV,
    NAMESPACES,
    CUTS,
    CONTAINERD,
    RUNC,
    POD_NETWORK,
    FENCE_AGENTS,
];

impl Package {
    fn is_there(self) -> bool {
        match self.sign {
            Sign::Program(name) => place::find(name).is_some(),
            Sign::File(path) => Path::new(path).exists(),
            Sign::PythonModule(name) => {
                let import = Command::new("python3").args(["-c", &format!("import {name}")]).output();
                import.is_ok_and(|output| output.status.success())
            }
        }
    }
}

/// Sees to it that they are all there. Asks before it installs, unless `yes` or in CI.
///
/// None of them starts a daemon when it is installed: openipmi only registers its script, ipmitool's ipmievd and
/// powerman are disabled, and snmpd and containerd are kept from it ([`NO_START`]). On a machine of its own, rather than in a
/// container, those two run from the next boot on, snmpd on loopback, unless `systemctl disable snmpd containerd` is run: the tests
/// start their own.
pub fn ensure(packages: &[Package], yes: bool) -> Result<(), Failure> {
    let missing = || packages.iter().filter(|package| !package.is_there()).map(|package| package.name);
    let names: Vec<&str> = missing().collect();
    if names.is_empty() {
        return Ok(());
    }
    let listed = names.join(" ");
    if place::find("apt-get").is_none() {
        let message = format!(
            "missing: {listed} (names of Debian's packages), and this machine has no apt-get: install them"
        );
        return Err(Failure::new(message));
    }
    let Some(become_root) = root() else {
        let message = format!(
            "missing: {listed}. As root: apt-get update && apt-get install --no-install-recommends {listed}"
        );
        return Err(Failure::new(message));
    };
    if !yes && !may_install(&listed, &become_root)? {
        return Err(Failure::new(format!("not installed: {listed}")));
    }
    let apt = |arguments: &[&str]| {
        let words = [
            &become_root[..],
            &["env", "DEBIAN_FRONTEND=noninteractive"],
            &NO_START,
            &["apt-get"],
            arguments,
        ]
        .concat();
        let (program, rest) = words.split_first().expect("it names apt-get");
        let mut command = Command::new(program);
        command.args(rest);
        // Somebody else's apt may hold the lock; a mirror may be slow.
        command.args(["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]);
        run::shown(command)
    };
    apt(&["update", "-q"])?;
    apt(&[&["install", "-q", "-y", "--no-install-recommends"], &names[..]].concat())?;
    match missing().next() {
        None => Ok(()),
        Some(name) => {
            Err(Failure::new(format!("{name} was installed, and what it is needed for is still not there")))
        }
    }
}

/// What goes before a command that wants root; `None` where there is no way.
fn root() -> Option<Vec<&'static str>> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() == b"0" {
        Some(Vec::new())
    } else {
        place::find("sudo")
            .map(|_| if std::io::stdin().is_terminal() { vec!["sudo"] } else { vec!["sudo", "-n"] })
    }
}

fn may_install(listed: &str, become_root: &[&str]) -> Result<bool, Failure> {
    if std::env::var_os("CI").is_some_and(|value| !value.is_empty()) {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        let message = format!("missing: {listed}. Nobody is there to ask: --yes installs them");
        return Err(Failure::new(message));
    }
    let how = [become_root, &["apt-get"]].concat().join(" ");
    print!("These Debian packages are missing: {listed}\nInstall them now, with {how}? [Y/n] ");
    std::io::stdout().flush().map_err(Failure::of("the terminal"))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(Failure::of("the terminal"))?;
    // The end of the input, without even a newline, is no yes.
    Ok(matches!(answer.to_ascii_lowercase().as_str(), "\n" | "y\n" | "yes\n"))
}
