//! A gateway whose devices switch no real machine (S1): it has no real device and no real release, and says in every answer what it is.

use std::path::Path;

use picket_tests::peers::{IpmiSim, fresh_address};
use picket_tests::{Bmc, Fleet, Gateway, PASSWORD_VARIABLE, Result, Said, fence_picket, picketd};
use serde_json::Value;

use crate::operation::{does, http, reload, with_metrics};

/// A node whose only device is simulated, and which lets go by the release `detach`.
const SIMULATED: &str =
    "[nodes.n1]\nreleases = [\"detach\"]\n[nodes.n1.devices.bmc]\ndriver = \"sim\"\nmachine = \"n1\"";
const NONE: &str = "[releases.detach]\nkind = \"none\"\nsettle = \"0s\"";

/// What the check says of settings that are wrong; the daemon says the same, and does not start.
async fn refused(fleet: &Fleet) -> Result<Said> {
    let gateway = Gateway::new(fleet)?;
    // First, because a daemon that started by these settings would run on.
    let checked =
        picketd(&gateway.settings_file(), &["--check"], &[(PASSWORD_VARIABLE, Fleet::password())]).await?;
    assert_eq!(checked.code, 78, "the settings are wrong: {checked:?}");
    let said = gateway.refuses().await?;
    assert_eq!((said.code, &said.err), (checked.code, &checked.err));
    assert!(!gateway.store_file().exists(), "nothing was begun");
    Ok(said)
}

fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

async fn says(gateway: &Gateway, arguments: &[&str]) -> Result<String> {
    let said = gateway.picket(arguments).await?;
    assert_eq!(said.code, 0, "{arguments:?}: {said:?}\n{}", gateway.log());
    Ok(said.out)
}

async fn json(gateway: &Gateway, arguments: &[&str]) -> Result<Value> {
    let said = says(gateway, &[arguments, &["-o", "json"]].concat()).await?;
    Ok(serde_json::from_str(&said).expect("JSON"))
}

/// Before this rule such a gateway started, and proved off by the second level what nobody had switched off.
#[tokio::test]
async fn a_simulated_device_behind_a_dead_bmc_is_refused_with_both_places() -> Result<()> {
    // Nobody listens there.
    let dead = Bmc::at(fresh_address()).device("n1", "bmc");
    let second = "[nodes.n1.devices.spare]\ndriver = \"sim\"\nmachine = \"n1\"";
    let levels = "[nodes.n1]\nlevels = [[\"bmc\"], [\"spare\"]]\nreleases = [\"detach\"]";
    let fleet = Fleet::new().with(levels).with(&dead).with(second).with(NONE);
    let said = refused(&fleet).await?;
    assert_eq!(said.err.lines().count(), 2, "one fault: {said:?}");
    has(
        &said.err,
        &[
            ": nodes.n1.devices.spare.driver: ",
            "device n1/spare (driver sim, ",
            "proves nothing real",
            "device n1/bmc (driver ipmi, ",
            ": nodes.n1.devices.bmc.driver) switches a real one",
            "devices of the driver sim alone or none of them",
        ],
    );
    Ok(())
}

#[tokio::test]
async fn a_simulated_gateway_with_real_releases_is_refused_with_each_of_them() -> Result<()> {
    let releases = "[releases.detach]\nkind = \"command\"\nprogram = \"/bin/true\"\n\
                    [releases.hook]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/release\"\n\
                    [releases.disks]\nkind = \"volumes\"\n\
                    [releases.pods]\nkind = \"kubernetes\"\nkubeconfig = \"/etc/picket/kubeconfig\"\n\
                    cluster_uid = \"3f0c6d4e-8a57-4a53-9f0e-0d6a3e9f2a11\"\n\
                    [releases.told]\nkind = \"none\"";
    let bmc = Fleet::new().node("n1", &Bmc::at(fresh_address()), &["detach"]);
    for (fleet, why) in [
        (Fleet::new().with(SIMULATED), "its devices are of the driver sim"),
        (bmc.with("[gateway]\nsimulated = true"), "gateway.simulated = true"),
    ] {
        let said = refused(&fleet.with(releases)).await?;
        for (name, kind) in
            [("detach", "command"), ("hook", "webhook"), ("disks", "volumes"), ("pods", "kubernetes")]
        {
            has(
                &said.err,
                &[
                    &format!(": releases.{name}.kind: release {name} is of kind {kind:?}"),
                    &format!("this gateway is simulated ({why})"),
                    "Set kind = \"none\"",
                ],
            );
        }
        assert!(!said.err.contains("release told"), "{said:?}");
    }
    // What the settings say of it must not be false either.
    let denied = Fleet::new().with(SIMULATED).with(NONE).with("[gateway]\nsimulated = false");
    has(&refused(&denied).await?.err, &["device n1/bmc (driver sim, ", "gateway.simulated = false says"]);
    Ok(())
}

#[tokio::test]
async fn a_simulated_gateway_says_so_in_status_evidence_and_receipt() -> Result<()> {
    let (fleet, address) = with_metrics(Fleet::new().with(SIMULATED).with(NONE));
    let mut gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    let warning = "this gateway is simulated (its devices are of the driver sim)";
    let log = gateway.log();
    assert_eq!(log.matches(warning).count(), 1, "{log}");
    assert!(log.lines().any(|line| line.contains(warning) && line.contains("WARN")), "{log}");
    says_what_it_is(&gateway).await?;
    has(&http(address, "GET", "/readyz").await.1, &["simulated: it switches no real machine"]);
    has(&http(address, "GET", "/metrics").await.1, &["picket_simulated 1"]);

    // A real device, or a real release, comes by no reload either.
    let real = Fleet::new().node("n2", &Bmc::at(fresh_address()), &[]);
    gateway.settings(&fleet.clone().with(&real.settings()))?;
    has(&reload(&mut gateway).await, &["n1/bmc (driver sim", "n2/bmc (driver ipmi", "refused as a whole"]);
    gateway.settings(&real)?;
    has(
        &reload(&mut gateway).await,
        &["cannot be changed while it runs: gateway.simulated", "restart picketd"],
    );
    Ok(())
}

#[tokio::test]
async fn a_gateway_over_simulated_bmcs_on_sockets_is_bound_alike() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let device = Bmc::simulated(bmc.address());
    let fleet = Fleet::new().node("n1", &device, &["detach"]).with(NONE).with("[gateway]\nsimulated = true");
    let mut gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    says_what_it_is(&gateway).await?;
    assert!(!bmc.is_on()?);

    // Its fences are of a simulation for good: another start without the word does not make them real.
    gateway.stop().await?;
    gateway.settings(&Fleet::new().node("n1", &device, &["detach"]).with(NONE))?;
    gateway.begin(&[]).await?;
    let status = says(&gateway, &["status", "n1"]).await?;
    has(&status, &["ORPHANED", "its devices were simulated, and the gateway is not any more"]);
    Ok(())
}

/// Fences n1, and reads what it says of that in every way.
async fn says_what_it_is(gateway: &Gateway) -> Result<()> {
    let words = "this gateway switches no real machine";
    for arguments in [vec!["status"], vec!["status", "n1"], vec!["nodes"], vec!["gateways"]] {
        has(&says(gateway, &arguments).await?, &["simulated", words]);
    }
    assert_eq!(json(gateway, &["status", "n1"]).await?["nodes"][0]["simulated"], true);
    assert_eq!(json(gateway, &["gateways"]).await?["simulated"], true);

    let fenced = says(gateway, &["fence", "n1", "--yes", "--reason", "a test"]).await?;
    has(
        &fenced,
        &[
            "fenced (simulated): confirmed off",
            "  released  ",
            ", simulated  ",
            "simulated: no real machine is off",
        ],
    );
    let kept = json(gateway, &["history", "n1"]).await?;
    assert_eq!(kept["fences"][0]["evidence"]["simulated"], true, "{kept:#}");
    has(&says(gateway, &["history", "n1"]).await?, &[", simulated"]);
    let audited = std::process::Command::new("grep")
        .args(["-rhc", "\"simulated\":true"])
        .arg(gateway.store_file().with_extension("audit"))
        .output();
    assert_ne!(String::from_utf8_lossy(&audited.expect("grep runs").stdout).trim(), "0");

    let (receipt, keys) = (gateway.directory().join("receipt.json"), gateway.directory().join("keys.json"));
    let got = says(gateway, &["receipt", "get", "n1", "--out", text(&receipt)]).await?;
    std::fs::write(&keys, says(gateway, &["receipt", "keys", "-o", "json"]).await?).expect("written");
    let verify = ["receipt", "verify", text(&receipt)];
    let offline = [&verify[..], &["--offline", "--keys", text(&keys)]].concat();
    for said in [got, says(gateway, &verify).await?, says(gateway, &offline).await?] {
        has(&said, &["simulated: it is of a gateway that switches no real machine"]);
    }
    for arguments in [&verify[..], &offline] {
        assert_eq!(json(gateway, arguments).await?["says"]["simulated"], true);
    }

    // A cluster would start elsewhere what runs on the real machine.
    let agent = ["--endpoint", &gateway.endpoint(), "--action", "off", "--plug", "n1"];
    let agent = fence_picket(&agent).await?;
    assert_ne!(agent.code, 0, "{agent:?}");
    has(&agent.err, &["n1 is not proven off: the gateway is simulated and switches no real machine"]);
    Ok(())
}

#[tokio::test]
async fn a_real_gateway_says_nothing_of_it() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let fleet = Fleet::new().node("n1", &Bmc::simulated(bmc.address()), &["detach"]).with(NONE);
    let gateway = Gateway::start(&fleet).await?;
    does(&gateway, "fence", "n1").await;
    for arguments in [vec!["status"], vec!["status", "n1"], vec!["history", "n1"], vec!["gateways"]] {
        let said = says(&gateway, &arguments).await?;
        assert!(!said.contains("simulated"), "{said}");
    }
    assert!(!gateway.log().contains("simulated"), "{}", gateway.log());
    let kept = json(&gateway, &["history", "n1"]).await?;
    assert_eq!(kept["fences"][0]["evidence"]["simulated"], false, "{kept:#}");
    Ok(())
}
