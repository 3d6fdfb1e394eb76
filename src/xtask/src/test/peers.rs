//! Builds what is tested, and brings the peers: what is fetched, what Go compiles and what Rust compiles beside each other.

use std::ffi::OsString;
use std::path::PathBuf;
use std::thread::{ScopedJoinHandle, scope};

use super::list::Test;
use super::nextest;
use crate::builds::NO_PROTOC;
use crate::failure::Failure;
use crate::{etcd, kubernetes, openstack, package, packages, place, prometheus, python, roots, run};

/// The variables by which tests find their peers.
pub type Variables = Vec<(&'static str, OsString)>;

/// All of it.
pub fn with_build(yes: bool) -> Result<Variables, Failure> {
    packages::ensure(packages::FOR_TESTS, yes)?;
    scope(|scope| {
        let (fetched, compiled) = (scope.spawn(pythons), scope.spawn(by_go));
        // All are waited for, whichever fails: a build that goes on behind a message of failure confuses.
        let built = build();
        variables(built, fetched, compiled)
    })
}

fn variables(
    built: Result<(), Failure>,
    fetched: ScopedJoinHandle<'_, Result<[PathBuf; 4], Failure>>,
    compiled: ScopedJoinHandle<'_, Result<[PathBuf; 4], Failure>>,
) -> Result<Variables, Failure> {
    let (fetched, compiled) = (ended(fetched), ended(compiled));
    built?;
    let ([python, openstack, aws, gcp], [etcd, old_etcd, kubernetes, promtool]) = (fetched?, compiled?);
    Ok(vec![
        ("PATH", place::search_path().into()),
        ("PICKET_TEST_AWS", aws.into()),
        ("PICKET_TEST_ETCD", etcd.into()),
        ("PICKET_TEST_GCP", gcp.into()),
        ("PICKET_TEST_KUBERNETES", kubernetes.into()),
        ("PICKET_TEST_OLD_ETCD", old_etcd.into()),
        ("PICKET_TEST_OPENSTACK", openstack.into()),
        ("PICKET_TEST_PROMTOOL", promtool.into()),
        ("PICKET_TEST_PYTHON", python.into()),
        ("PICKET_BIN_DIR", place::built()?.into()),
    ])
}

fn ended<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Builds without bringing a peer. `None`: the selected tests decide whether peers are needed.
pub fn build_alone(yes: bool) -> Result<Option<Variables>, Failure> {
    packages::ensure(packages::FOR_BUILD, yes)?;
    build().map(|()| None)
}

/// Whether tests of this package ask peers that others wrote.
pub fn wants_some(package: &str) -> bool {
    ["picket-tests", "picket-driver-ipmi", "picket-driver-redfish", "picket-driver-agent"].contains(&package)
}

/// Whether a test installs packages, for which a minute of building tools is not too much.
pub fn wants_packages(test: &Test) -> bool {
    (test.binary.as_str(), test.module()) == ("deploy", "packages")
}

/// What packs, and where a package is installed.
pub fn with_packages(yes: bool) -> Result<Variables, Failure> {
    package::tools(yes)?;
    Ok(vec![("PICKET_TEST_ROOTS", roots::folder(yes)?.into())])
}

/// The programs and their tests. Together, as the tests ask for more features: else everything would be built twice.
pub fn build() -> Result<(), Failure> {
    let mut build = place::cargo();
    build.args(["build", "--workspace", "--bins", "--tests", "--locked"]).env(NO_PROTOC.0, NO_PROTOC.1);
    run::shown(build)?;
    nextest::program().map(drop)
}

/// The Pythons of the tests, OpenStack's, AWS' and Google's.
fn pythons() -> Result<[PathBuf; 4], Failure> {
    Ok([python::environment()?, openstack::environment()?, python::aws()?, python::gcp()?])
}

/// etcd and an old one, Kubernetes, promtool.
fn by_go() -> Result<[PathBuf; 4], Failure> {
    Ok([etcd::present()?, etcd::old()?, kubernetes::programs()?, prometheus::promtool()?])
}
