//! Backup and restore with the real daemon (S21): what was fenced is kept off in the new life, unproven, until an admin says
//! otherwise; nothing is sent on a backup's word; a store that was moved is refused.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use picket_tests::{Gateway, Result, Said, picketd};

use crate::operation::{SOON, does, one_node};
use picket_tests::peers::{IpmiSim, eventually};

/// A task of `picketd` with the gateway's settings.
async fn task(gateway: &Gateway, arguments: &[&str]) -> Result<Said> {
    picketd(&gateway.settings_file(), arguments, &[]).await
}

async fn status(gateway: &Gateway) -> Result<String> {
    Ok(gateway.picket(&["status", "n1"]).await?.out)
}

/// Waits until the status of n1 says all of this.
async fn says(gateway: &Gateway, words: &[&str]) -> Result<String> {
    // What may have been under way is waited out: receipts, releases, half a minute of the BMC's sessions.
    let until = tokio::time::Instant::now() + SOON * 3;
    loop {
        let said = status(gateway).await?;
        if words.iter().all(|word| said.contains(word)) {
            return Ok(said);
        }
        assert!(tokio::time::Instant::now() < until, "{words:?} in {said}\n{}", gateway.log());
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// Takes the store away, as if its disk were lost.
fn lose(gateway: &Gateway) {
    let store = gateway.store_file();
    let mut lock = store.clone().into_os_string();
    lock.push(".lock");
    for path in [store.as_os_str(), lock.as_os_str()] {
        std::fs::remove_file(path).expect("it was there");
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// Fenced, taken while it runs, lost, restored, started again.
async fn restored(roles: &str) -> Result<(IpmiSim, picket_tests::Webhook, Gateway)> {
    let (bmc, webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::start(&fleet).await?;
    does(&gateway, "fence", "n1").await;
    let file = gateway.directory().join("backup");
    let name = file.display().to_string();
    let said = gateway.picket(&["backup", &name]).await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", gateway.log());
    assert!(said.out.starts_with(&format!("{name}: 1 nodes and 1 fences of the store's life ")), "{said:?}");
    assert_eq!(mode(&file), 0o600);
    let again = gateway.picket(&["backup", &name]).await?;
    assert!(
        again.code != 0 && again.err.contains("is there already, and no backup is overwritten"),
        "{again:?}"
    );
    let refused = task(&gateway, &["restore", "--from", &name]).await?;
    assert!(refused.err.contains("another picketd (pid "), "{refused:?}");
    gateway.stop().await?;
    let refused = task(&gateway, &["restore", "--from", &name]).await?;
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.err.contains("there is a store at "), "{refused:?}");
    lose(&gateway);
    let said = task(&gateway, &["restore", "--from", &name]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("with 1 nodes and 1 fences. It begins the life "), "{said:?}");
    if !roles.is_empty() {
        let path = gateway.settings_file();
        let settings = std::fs::read_to_string(&path).expect("settings");
        std::fs::write(&path, settings + roles).expect("written");
    }
    gateway.begin(&[]).await?;
    Ok((bmc, webhook, gateway))
}

#[tokio::test]
async fn what_was_fenced_is_kept_off_until_an_admin_says_otherwise() -> Result<()> {
    let (bmc, webhook, mut gateway) = restored("").await?;
    let said = says(&gateway, &["fenced", "restored"]).await?;
    assert!(!said.contains("proven off"), "nothing is proven: {said}");
    assert_eq!((bmc.is_on()?, webhook.releases().len()), (false, 1));
    // Its caller's hold goes, and it stays off.
    let unfence = gateway.picket(&["unfence", "n1", "--yes", "--reason", "a test"]).await?;
    assert!(!bmc.is_on()?, "{unfence:?}");
    let log = gateway.log();
    assert!(log.contains("the store came out of a backup"), "{log}");
    // A restart changes nothing of it.
    gateway.stop().await?;
    gateway.begin(&[]).await?;
    says(&gateway, &["fenced", "restored"]).await?;
    // Without [roles] whoever reaches the socket is an admin.
    let said = gateway.picket(&["unhold", "n1", "--holder", "restored", "--reason", "looked at it"]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    says(&gateway, &["normal"]).await?;
    assert!(bmc.is_on()?);
    Ok(())
}

#[tokio::test]
async fn a_fence_of_it_is_proven_and_released_anew() -> Result<()> {
    let (bmc, webhook, gateway) = restored("").await?;
    says(&gateway, &["fenced", "restored"]).await?;
    does(&gateway, "fence", "n1").await;
    assert_eq!((bmc.is_on()?, webhook.releases().len()), (false, 2));
    says(&gateway, &["released", "proven off", "restored"]).await?;
    Ok(())
}

#[tokio::test]
async fn an_operator_does_not_drop_the_hold() -> Result<()> {
    let user = rustix::process::getuid().as_raw();
    let roles = format!("\n[roles.operators]\nrole = \"operator\"\nuids = [{user}]\n");
    let (bmc, _webhook, gateway) = restored(&roles).await?;
    says(&gateway, &["fenced", "restored"]).await?;
    for verb in ["unhold", "unfence"] {
        let said =
            gateway.picket(&[verb, "n1", "--yes", "--holder", "restored", "--reason", "a test"]).await?;
        assert!(said.code != 0 && said.err.contains("admin") || said.out.contains("admin"), "{said:?}");
    }
    let refused =
        gateway.picket(&["backup", &gateway.directory().join("other").display().to_string()]).await?;
    assert!(refused.code != 0 && refused.err.contains("admin"), "{refused:?}");
    assert!(!gateway.directory().join("other").exists());
    assert!(!bmc.is_on()?);
    Ok(())
}

#[tokio::test]
async fn a_backup_that_is_not_whole_is_refused_and_nothing_is_made() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::start(&fleet).await?;
    gateway.stop().await?;
    let file = gateway.directory().join("backup");
    let name = file.display().to_string();
    let said = task(&gateway, &["backup", "--to", &name]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(mode(&file), 0o600);
    let bytes = std::fs::read(&file).expect("it is there");
    std::fs::write(&file, &bytes[..bytes.len() - 9]).expect("written");
    lose(&gateway);
    let refused = task(&gateway, &["restore", "--from", &name]).await?;
    assert_eq!(refused.code, 65, "{refused:?}");
    assert!(refused.err.contains("without its last line: it was cut off"), "{refused:?}");
    assert!(!gateway.store_file().exists());
    Ok(())
}

#[tokio::test]
async fn a_store_that_was_moved_is_refused_until_it_is_unsealed() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::start(&fleet).await?;
    let drained = gateway.picket(&["drain", "--reason", "a move"]).await?;
    assert_eq!(drained.code, 0, "{drained:?}");
    assert!(drained.out.contains("no fence is under way, and none starts"), "{drained:?}");
    gateway.stop().await?;
    let name = gateway.directory().join("backup").display().to_string();
    let said = task(&gateway, &["backup", "--to", &name, "--moved-to", "etcd at e1:2379"]).await?;
    assert!(said.code == 0 && said.out.contains("marked as moved to etcd at e1:2379"), "{said:?}");
    let refused = gateway.refuses().await?;
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.err.contains("was moved to etcd at e1:2379, and is not used any more"), "{refused:?}");
    let said = task(&gateway, &["unseal"]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    gateway.begin(&[]).await?;
    eventually("it leads", SOON, || gateway.log().contains("leading")).await?;
    Ok(())
}
