//! deploy/three-machines, as a newcomer follows it: the script, its files, three members of etcd and three gateways by them.

mod prepared;
mod running;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use picket_etcd_api::{Client, RangeRequest};
use picket_tests::Result;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use prepared::{CALLER, Prepared, folder, run};
use running::Running;

/// Who has a certificate of which CA, as etcd's clients show it.
async fn etcd_lets_in(endpoint: &str, ca: &Path, certificate: &Path, key: &Path) -> bool {
    let read = |path: &Path| std::fs::read(path).expect("read");
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(read(ca)))
        .identity(Identity::from_pem(read(certificate), read(key)));
    let endpoint = Endpoint::from_shared(endpoint.to_owned())
        .and_then(|endpoint| endpoint.tls_config(tls))
        .expect("a URL");
    let channel = endpoint.connect_timeout(Duration::from_secs(60)).connect_lazy();
    let etcd = Client::new(channel);
    let ask = etcd.range(RangeRequest::one("/picket/format"));
    tokio::time::timeout(Duration::from_secs(120), ask).await.expect("an answer").is_ok()
}

#[tokio::test]
async fn three_machines_fence_by_these_files_and_another_leads_when_the_leader_is_killed() -> Result<()> {
    let mut running = Running::start().await?;
    let said = running.picket(&["gateways"]).await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", running.logs());
    for name in ["g1", "g2", "g3"] {
        assert!(said.out.lines().any(|line| line.starts_with(name)), "{said:?}");
    }
    assert!(said.out.contains("leads, term") && !said.out.contains("does not stand"), "{said:?}");

    let said = running.picket(&["fence", "r1n01", "--yes", "--reason", "a test"]).await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", running.logs());
    assert!(!running.bmc.is_on()?, "{said:?}");

    let killed = running.kill_the_leader().await?;
    // Nothing else is told to the caller: the same contexts, whoever leads.
    let said = running.picket(&["unfence", "r1n01", "--yes", "--reason", "a test"]).await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", running.logs());
    assert!(running.bmc.is_on()?);
    let next = running.leader().await?;
    assert_ne!(next, killed);
    assert!(!running.logs().contains("panicked"), "{}", running.logs());
    Ok(())
}

#[tokio::test]
async fn a_callers_certificate_opens_no_etcd_and_a_gateways_does() -> Result<()> {
    let mut running = Running::start().await?;
    let (endpoint, root) = (running.etcd(0), running.prepared.root(0));
    let own = root.join("etc/picket/etcd");
    let ca = own.join("ca.pem");
    assert!(etcd_lets_in(&endpoint, &ca, &own.join("client.pem"), &own.join("client.key")).await);
    let caller = running.prepared.caller();
    assert!(!etcd_lets_in(&endpoint, &ca, &caller.join("caller.pem"), &caller.join("caller.key")).await);
    // And a certificate for etcd is no caller's.
    let (certificate, key) = (own.join("client.pem"), own.join("client.key"));
    let shown = |path: &Path| path.display().to_string();
    let as_gateway =
        ["--cert-file", &shown(&certificate), "--key-file", &shown(&key), "nodes", "--timeout", "120s"];
    let said = running.picket(&as_gateway).await?;
    assert!(said.code == 7 && said.err.contains("not of a CA that the gateway knows"), "{said:?}");
    running.still_run()
}

#[tokio::test]
async fn the_settings_of_each_machine_are_right() -> Result<()> {
    let running = Running::prepare().await?;
    for machine in 0..3 {
        let said = running.check(machine).await?;
        assert!(said.code == 0 && said.out.contains("right, with 1 nodes"), "{said:?}");
    }
    Ok(())
}

#[test]
fn nothing_is_overwritten_and_keys_are_their_owners_alone() -> Result<()> {
    let prepared = Prepared::with(&["g1 g1.example.org", "g2 g2.example.org", "g3 g3.example.org"])?;
    // What is shipped as an example is what the script makes of the file machines as it is shipped.
    let made = std::fs::read_to_string(prepared.root(0).join("etc/picket/host.env")).expect("made");
    assert_eq!(made, std::fs::read_to_string(folder().join("host.env")).expect("shipped"));

    // Each key belongs to the user of its program, by tmpfiles.d, which the README has run.
    let whose = std::fs::read_to_string(folder().join("three-machines.tmpfiles.conf")).expect("shipped");
    for machine in 0..3 {
        let root = prepared.root(machine);
        for key in [
            "picket/tls/server.key",
            "picket/etcd/client.key",
            "picket-etcd/server.key",
            "picket-etcd/peer.key",
        ] {
            let mode = std::fs::metadata(root.join("etc").join(key)).expect("made").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{key}");
            let user = key.split('/').next().expect("a folder");
            let line = format!("z /etc/{key} 0600 {user} {user} -");
            assert!(whose.lines().any(|found| found == line), "{line}");
        }
    }
    for private in [
        "ca/picket.key",
        "ca/etcd.key",
        "ca/etcd-peer.key",
        "g1.tar",
        &format!("callers/{CALLER}/caller.key"),
    ] {
        let mode = std::fs::metadata(prepared.out().join(private)).expect("made").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{private}");
    }

    let before = std::fs::read(prepared.out().join("g1.tar")).expect("made");
    let again = prepared.again(&[])?;
    assert!(!again.0 && again.1.contains("nothing is overwritten"), "{again:?}");
    assert_eq!(std::fs::read(prepared.out().join("g1.tar")).expect("there"), before);
    Ok(())
}

#[test]
fn with_the_former_cas_a_new_certificate_is_of_the_same_fleet() -> Result<()> {
    let prepared = Prepared::with(&["g1 g1.example.org", "g2 g2.example.org", "g3 g3.example.org"])?;
    let later = prepared.renewed()?;
    let ca = prepared.out().join("ca/picket.pem");
    let said = run(Command::new("openssl")
        .args(["verify", "-CAfile"])
        .arg(&ca)
        .arg(later.join("bob@example.org/caller.pem")));
    assert!(said.0, "{said:?}");
    Ok(())
}

#[test]
fn what_cannot_be_meant_is_refused_and_nothing_is_made() -> Result<()> {
    for (machines, words) in [
        (&["g1 a", "g2 b"][..], "three lines"),
        (&["g1 a", "g2 a", "g3 c"], "a stands there twice"),
        (&["g1 a", "g2 b", "g3"], "has no host"),
        (&["G1 a", "g2 b", "g3 c"], "is no name"),
        (&["g1 a", "g2 https://b", "g3 c"], "neither a host name nor an IPv4 address"),
    ] {
        let said = Prepared::refused(machines, &[CALLER])?;
        assert!(said.contains(words), "{machines:?}: {said}");
    }
    let right = ["g1 a", "g2 b", "g3 c"];
    for (callers, words) in [
        (&[][..], "usage"),
        (&["a b"], "names no caller"),
        (&["x/y"], "names no caller"),
        (&["a@b", "a@b"], "another caller's"),
    ] {
        let said = Prepared::refused(&right, callers)?;
        assert!(said.contains(words), "{callers:?}: {said}");
    }
    Ok(())
}

/// A unit as it is after the script, where the programs that it names stand where the tests run.
fn verified(units: &[(&str, PathBuf)]) -> String {
    let home = tempfile::tempdir().expect("a directory");
    for (name, file) in units {
        let text = std::fs::read_to_string(file).expect("there");
        let there =
            text.replace("/usr/local/bin/picketd", "/bin/true").replace("/usr/local/bin/etcd", "/bin/true");
        let users = there.lines().filter(|line| !line.starts_with("User=") && !line.starts_with("Group="));
        let at = home.path().join(name);
        std::fs::create_dir_all(at.parent().expect("a folder")).expect("made");
        std::fs::write(at, users.collect::<Vec<_>>().join("\n")).expect("written");
    }
    let mut verify = Command::new("systemd-analyze");
    verify
        .args(["verify", "--man=no"])
        .args(["picket-etcd.service", "picketd.service"].map(|unit| home.path().join(unit)));
    match verify.output() {
        Ok(said) => String::from_utf8_lossy(&said.stderr).into_owned(),
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
            println!(
                "NOT VERIFIED by systemd: this machine has no systemd-analyze (Debian's package systemd); their text was"
            );
            String::new()
        }
    }
}

#[test]
fn the_units_are_walled_in_and_systemd_takes_them() {
    let text = std::fs::read_to_string(folder().join("picket-etcd.service")).expect("shipped");
    let picketd = folder().join("../systemd/picketd.service");
    let walls = std::fs::read_to_string(&picketd).expect("shipped");
    // What walls picketd in walls etcd in; which sockets and which processes it sees is a matter of its own.
    for line in walls.lines().filter(|line| {
        [
            "Protect",
            "RestrictNamespaces",
            "RestrictRealtime",
            "RestrictSUIDSGID",
            "Private",
            "NoNew",
            "Capability",
            "SystemCall",
            "LockPersonality",
            "MemoryDeny",
        ]
        .iter()
        .any(|key| line.starts_with(key) && !line.starts_with("ProtectProc"))
    }) {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
    for line in [
        "Restart=always",
        "StartLimitIntervalSec=0",
        "User=picket-etcd",
        "EnvironmentFile=/etc/picket/host.env",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
    let drop_in = std::fs::read_to_string(folder().join("picketd.three-machines.conf")).expect("shipped");
    for line in
        ["After=picket-etcd.service", "Wants=picket-etcd.service", "EnvironmentFile=/etc/picket/host.env"]
    {
        assert!(drop_in.lines().any(|found| found == line), "{line}");
    }
    let words = verified(&[
        ("picket-etcd.service", folder().join("picket-etcd.service")),
        ("picketd.service", picketd),
        ("picketd.service.d/three-machines.conf", folder().join("picketd.three-machines.conf")),
    ]);
    let ours = words.lines().filter(|line| line.contains("picket"));
    assert_eq!(ours.collect::<Vec<_>>(), Vec::<&str>::new());
}
