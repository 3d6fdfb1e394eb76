//! A store on a file system that other machines may have too: what locks it here locks it for nobody there.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;

use picket_tests::peers::HANGS;
use picket_tests::{Fleet, Gateway, Result, program};

const FLEET: &str = "[nodes.n1.devices.bmc]\ndriver = \"sim\"\nmachine = \"n1\"\n";

/// Runs the daemon where `share` shows what is in `behind`, through a file system that is none of this machine's own. It ends with the daemon.
fn command(behind: &Path, share: &Path) -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.args(["sh", "-c", "bindfs \"$0\" \"$1\" && shift && exec \"$@\""]).arg(behind).arg(share);
    command
}

#[tokio::test]
async fn a_store_that_other_machines_may_have_too_is_refused_before_anything_is_there() -> Result<()> {
    let gateway = Gateway::new(&Fleet::new().with(FLEET))?;
    let (behind, share) = (gateway.directory().join("behind"), gateway.directory().join("share"));
    for directory in [&behind, &share] {
        std::fs::DirBuilder::new().mode(0o700).create(directory).expect("made");
    }
    let file = gateway.settings_file();
    let settings = std::fs::read_to_string(&file).expect("read");
    let store = share.join("picket.redb");
    let settings = settings.replace(&format!("{:?}", gateway.store_file()), &format!("{store:?}"));
    std::fs::write(&file, settings).expect("written");
    for arguments in [&["--check"][..], &[]] {
        let mut command = command(&behind, &share);
        command.arg(program("picketd")?).arg("--config").arg(&file).args(arguments);
        let output = tokio::process::Command::from(command).kill_on_drop(true).output();
        let ended = tokio::time::timeout(HANGS, output).await.expect("it ends").expect("it runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(78), "{said}");
        let place = share.display().to_string();
        for words in [&*place, "FUSE", "a local disk", "[store] kind = \"etcd\""] {
            assert!(said.contains(words), "no {words:?} in {said}");
        }
    }
    assert_eq!(std::fs::read_dir(&behind).expect("read").count(), 0, "nothing is left there");
    Ok(())
}
