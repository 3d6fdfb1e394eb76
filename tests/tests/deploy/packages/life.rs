//! A package in systems of Debian that boot: installed, upgraded with a fence open, booted again with it, and removed. Wants root.
//!
//! There the unit is systemd's. It is started, reloaded, looked at and stopped by the commands of the pages.

use picket_tests::Result;
use picket_tests::peers::{HANGS, until};
use serde_json::Value;

use super::booted::Debian;
use super::{Form, Packages};

const FLEET: &str = "\
[accounts.operator]
password = \"secret12\"
role = \"operator\"

[groups.n]
count = 2
ipmi = \"127.6.1.1:10623\"
";

/// Nobody is told before an hour that a BMC is silent. The second BMC refuses its password.
const SETTINGS: &str = "\
[gateway]
simulated = true

[rules]
silent_share = \"1h\"
level_share = \"1h\"
fence_deadline = \"2h\"

[nodes.n1.devices.bmc]
driver = \"ipmi\"
host = \"127.6.1.1\"
port = 10623
username = \"operator\"
password_file = \"/etc/picket/bmc.password\"

[nodes.n2.devices.bmc]
driver = \"ipmi\"
host = \"127.6.1.2\"
port = 10623
username = \"operator\"
password_file = \"/etc/picket/wrong.password\"
";

/// Installed, it is right as it stands, starts nothing, and has a user.
async fn is_right_as_it_stands(system: &mut Debian) -> Result<()> {
    let version = system.succeeds(&["picketd", "--version"]).await?;
    assert!(version.out.contains("\nfeatures: ") && version.out.contains(" aws "), "{version:?}");
    for program in ["picket", "picket-controller", "picket-fleet", "fence_picket"] {
        let said = system.succeeds(&[program, "--version"]).await?;
        assert!(said.out.starts_with(&format!("{program} {}", env!("CARGO_PKG_VERSION"))), "{said:?}");
    }
    let as_picket = ["setpriv", "--reuid=picket", "--regid=picket", "--clear-groups"];
    system.succeeds(&[&as_picket[..], &["picketd", "--check"]].concat()).await?;
    assert_eq!(owned(system, "/etc/picket").await?, "750 root:picket");
    assert_eq!(system.runs(&["systemctl", "is-enabled", "picketd"]).await?.out, "disabled\n");
    // What the first boot of an image does to each unit.
    system.succeeds(&["systemctl", "preset", "picketd"]).await?;
    assert_eq!(system.runs(&["systemctl", "is-enabled", "picketd"]).await?.out, "disabled\n");
    assert_eq!(system.runs(&["systemctl", "is-active", "picketd"]).await?.out, "inactive\n");
    for page in ["man1/picket-fence.1.gz", "man8/picketd.8.gz", "man8/fence_picket.8.gz"] {
        assert!(system.has(&format!("/usr/share/man/{page}")).await?, "{page}");
    }
    Ok(())
}

/// The mode and the owners of a file.
async fn owned(system: &mut Debian, path: &str) -> Result<String> {
    Ok(system.succeeds(&["stat", "--format=%a %U:%G", path]).await?.out.trim().to_owned())
}

async fn property(system: &mut Debian, name: &str) -> Result<String> {
    let said = system.succeeds(&["systemctl", "show", "--value", "--property", name, "picketd"]).await?;
    Ok(said.out.trim().to_owned())
}

/// Its nodes in place of the simulated one, and BMCs that answer.
async fn is_set_up(system: &mut Debian) -> Result<()> {
    system.write("/etc/picket/picket.toml", SETTINGS).await?;
    for (name, password) in [("bmc", "secret12"), ("wrong", "not this")] {
        let file = format!("/etc/picket/{name}.password");
        system.write(&file, password).await?;
        system.succeeds(&["chown", "picket:picket", &file]).await?;
        system.succeeds(&["chmod", "600", &file]).await?;
    }
    system.write("/root/fleet.toml", FLEET).await?;
    bmcs_answer(system).await
}

async fn bmcs_answer(system: &mut Debian) -> Result<()> {
    system.succeeds(&["systemd-run", "--unit=fleet", "picket-fleet", "/root/fleet.toml"]).await.map(drop)
}

/// systemd has it started, by the user of the package, in folders of its own, within walls.
async fn runs_as_the_unit_says(system: &mut Debian) -> Result<()> {
    // This waits until the gateway says that it is ready.
    system.succeeds(&["systemctl", "enable", "--now", "picketd"]).await?;
    for (name, is) in
        [("Type", "notify"), ("ActiveState", "active"), ("SubState", "running"), ("NRestarts", "0")]
    {
        assert_eq!(property(system, name).await?, is, "{name}");
    }
    system.succeeds(&["picket", "nodes"]).await?;
    let process = property(system, "MainPID").await?;
    let status = system.succeeds(&["cat", &format!("/proc/{process}/status")]).await?.out;
    let user = system.succeeds(&["id", "--user", "picket"]).await?.out.trim().to_owned();
    let runs_by = format!("\nUid:\t{user}\t{user}\t{user}\t{user}\n");
    assert!(status.contains(&runs_by), "{runs_by}: {status}");
    assert_eq!(owned(system, "/var/lib/picket").await?, "700 picket:picket");
    assert_eq!(owned(system, "/run/picket").await?, "750 picket:picket");
    let told = system.succeeds(&["systemd-analyze", "security", "--no-pager", "picketd"]).await?.out;
    let (_, level) = told.rsplit_once("Overall exposure level for picketd.service: ").expect("it is told");
    let level: f64 = level.split(' ').next().unwrap_or_default().parse().expect("a number");
    assert!(level < 1.5, "{told}");
    Ok(())
}

/// What goes wrong is found by its priority, and nothing else is.
async fn errors_are_found(system: &mut Debian, words: &[&str]) -> Result<()> {
    let mut told = String::new();
    let found = until("the journal has it", HANGS, async || {
        told = system.succeeds(&["journalctl", "--no-pager", "-p", "err", "-u", "picketd"]).await?.out;
        Ok(words.iter().all(|words| told.contains(words)))
    });
    found.await?;
    assert!(!told.contains(" INFO ") && !told.contains(" WARN "), "{told}");
    Ok(())
}

/// A reload waits for its end, and fails where the settings are refused.
async fn settings_are_read_anew(system: &mut Debian) -> Result<()> {
    let process = property(system, "MainPID").await?;
    let file = "/etc/picket/picket.toml";
    system.write(file, &format!("{SETTINGS}\n[roles.bob]\nrole = \"viewer\"\nuids = [4711]\n")).await?;
    system.succeeds(&["systemctl", "reload", "picketd"]).await?;
    let journal = system.succeeds(&["journalctl", "--no-pager", "-u", "picketd"]).await?.out;
    assert!(journal.contains("the new settings hold"), "{journal}");
    system.write(file, "[nodes]\nn1 = 7\n").await?;
    let refused = system.runs(&["systemctl", "reload", "picketd"]).await?;
    assert_ne!(refused.code, 0, "{refused:?}");
    errors_are_found(system, &["the new settings were refused as a whole"]).await?;
    system.write(file, SETTINGS).await?;
    system.succeeds(&["systemctl", "reload", "picketd"]).await?;
    assert_eq!(property(system, "MainPID").await?, process);
    Ok(())
}

async fn node(system: &mut Debian) -> Result<Value> {
    let said = system.succeeds(&["picket", "status", "n1", "-o", "json"]).await?;
    let told: Value = serde_json::from_str(&said.out).expect("JSON");
    Ok(told["nodes"][0].clone())
}

/// That fence is open, in a gateway that is ready or will be.
async fn goes_on(system: &mut Debian, fence: &Value) -> Result<()> {
    until("the gateway answers", HANGS, async || Ok(system.runs(&["picket", "nodes"]).await?.code == 0))
        .await?;
    let now = node(system).await?;
    assert_eq!((&now["phase"], &now["fence_id"]), (&Value::from("fencing"), fence), "{now}");
    Ok(())
}

async fn lives_through_its_life(suite: &str, form: Form) -> Result<()> {
    let packages = Packages::made()?;
    let brought = [1, 2].map(|revision| (form.brought(revision), packages.file(form, revision)));
    let mut booted = Debian::boot(suite, &brought).await?;
    let system = &mut booted;
    form.install(system, 1).await?;
    is_right_as_it_stands(system).await?;
    is_set_up(system).await?;
    runs_as_the_unit_says(system).await?;
    errors_are_found(system, &["the device cannot be used for a fence now", "n2"]).await?;
    settings_are_read_anew(system).await?;

    // Its BMC is silent from now on: nothing ends the fence.
    system.succeeds(&["systemctl", "stop", "fleet"]).await?;
    let fence = ["picket", "fence", "n1", "--yes", "--reason", "an upgrade", "--timeout", "5s"];
    let asked = system.runs(&fence).await?;
    assert_ne!(asked.code, 0, "{asked:?}");
    let fence = node(system).await?["fence_id"].clone();
    assert!(fence.is_string(), "{fence}");
    goes_on(system, &fence).await?;
    system.succeeds(&["systemctl", "restart", "picketd"]).await?;
    goes_on(system, &fence).await?;

    let old = property(system, "MainPID").await?;
    form.install(system, 2).await?;
    until("the new program runs", HANGS, async || {
        let process = property(system, "MainPID").await?;
        let runs = system.runs(&["readlink", &format!("/proc/{process}/exe")]).await?;
        Ok(process != old && runs.out == "/usr/bin/picketd\n")
    })
    .await?;
    goes_on(system, &fence).await?;
    let kept = system.succeeds(&["cat", "/etc/picket/picket.toml"]).await?;
    assert_eq!(kept.out, SETTINGS);

    system.boots_again().await?;
    goes_on(system, &fence).await?;
    bmcs_answer(system).await?;
    until("the fence that was open is over", HANGS, async || Ok(node(system).await?["phase"] == "released"))
        .await?;
    let after = node(system).await?;
    assert_eq!(after["fence_id"], fence, "another fence: {after}");
    is_gone_but_for_what_is_known(system, form).await
}

async fn is_gone_but_for_what_is_known(system: &mut Debian, form: Form) -> Result<()> {
    let process = property(system, "MainPID").await?;
    form.remove(system).await?;
    assert!(!system.has("/usr/bin/picketd").await? && !system.has(&format!("/proc/{process}")).await?);
    assert_eq!(system.runs(&["systemctl", "is-active", "picketd"]).await?.out, "inactive\n");
    let begins = "/etc/systemd/system/multi-user.target.wants/picketd.service";
    assert_ne!(system.runs(&["test", "-L", begins]).await?.code, 0, "it would start at the next boot");
    let settings = match form {
        Form::Deb => "/etc/picket/picket.toml",
        Form::Rpm => "/etc/picket/picket.toml.rpmsave",
    };
    for kept in [settings, "/etc/picket/bmc.password", "/var/lib/picket/picket.redb"] {
        assert!(system.has(kept).await?, "{kept} went with the programs");
    }
    // Who takes an .rpm away has no such word.
    if form == Form::Deb {
        let purged = system.succeeds(&["dpkg", "--purge", "picket"]).await?;
        for folder in ["/var/lib/picket", "/etc/picket"] {
            assert!(!system.has(folder).await?, "{folder} is there after a purge");
            assert!(purged.err.contains(&format!("removing {folder}")), "{purged:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn debian_12_boots_with_it_and_upgrades_it_with_a_fence_open() -> Result<()> {
    lives_through_its_life("bookworm", Form::Deb).await
}

#[tokio::test]
async fn debian_13_boots_with_it_and_upgrades_it_with_a_fence_open() -> Result<()> {
    lives_through_its_life("trixie", Form::Deb).await
}

/// By Debian's rpm: there is no system of Red Hat's or SUSE's to be had here.
#[tokio::test]
async fn an_rpm_lives_the_same_life() -> Result<()> {
    lives_through_its_life("trixie", Form::Rpm).await
}
