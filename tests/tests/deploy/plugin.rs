//! `kubectl picket`, run by the real kubectl.

use std::os::unix::fs::symlink;

use picket_tests::peers::kubectl;
use picket_tests::{PeerError, Result, Said, program};

#[tokio::test]
async fn kubectl_finds_it_by_its_name_and_its_usage_says_so() -> Result<()> {
    let folder = tempfile::tempdir().map_err(PeerError::io("create a folder"))?;
    symlink(program("picket")?, folder.path().join("kubectl-picket")).map_err(PeerError::io("link"))?;
    let said = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(kubectl()?);
        command.args(arguments).env("PATH", folder.path()).kill_on_drop(true);
        Ok::<Said, PeerError>(Said::of(command.output().await.map_err(PeerError::io("run kubectl"))?))
    };
    let help = said(&["picket", "fence", "--help"]).await?;
    assert!(help.code == 0 && help.out.contains("Usage: kubectl picket fence"), "{help:?}");
    // Its exit codes are its own: nobody answers there.
    let nobody = said(&["picket", "nodes", "--endpoint", "unix:/nowhere.sock"]).await?;
    assert_eq!(nobody.code, 5, "{nobody:?}");
    let plugins = said(&["plugin", "list"]).await?;
    assert!(plugins.out.contains("kubectl-picket"), "{plugins:?}");
    Ok(())
}
