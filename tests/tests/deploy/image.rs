//! The image, made of the programs under test, before a container runtime that others wrote.

use std::path::{Path, PathBuf};
use std::time::Duration;

use picket_tests::peers::{Process, until};
use picket_tests::{PeerError, Result, Said, program};
use tempfile::TempDir;

/// An archive as `cargo xtask image` makes it.
pub struct Made {
    pub archive: PathBuf,
    name: String,
    digest: String,
    _folder: TempDir,
}

/// Makes it of the programs that are tested.
pub async fn made() -> Result<Made> {
    let folder = tempfile::tempdir().map_err(PeerError::io("create a folder for images"))?;
    let picketd = program("picketd")?;
    let programs = picketd.parent().unwrap_or(Path::new("/"));
    let mut command = tokio::process::Command::new(program("xtask")?);
    // As cargo runs it.
    command.env("CARGO_MANIFEST_DIR", Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/xtask"));
    command.arg("image").arg("--from").arg(programs).arg("--out").arg(folder.path());
    let said = Said::of(command.output().await.map_err(PeerError::io("run xtask image"))?);
    assert_eq!(said.code, 0, "{said:?}");
    let (archive, rest) = said.out.trim().split_once(": ").expect("the archive and what it is");
    let (name, digest) = rest.split_once(", ").expect("its name and its digest");
    Ok(Made { archive: archive.into(), name: name.to_owned(), digest: digest.to_owned(), _folder: folder })
}

/// A containerd that shares nothing with one of the machine's.
struct Containerd {
    _process: Process,
    folder: TempDir,
}

impl Containerd {
    async fn start() -> Result<Self> {
        let folder = tempfile::tempdir().map_err(PeerError::io("create containerd's folder"))?;
        let at = |name: &str| folder.path().join(name);
        let settings = format!(
            "version = 2\nroot = {:?}\nstate = {:?}\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n\
             [grpc]\naddress = {:?}\n[plugins.\"io.containerd.internal.v1.opt\"]\npath = {:?}\n",
            at("root"),
            at("state"),
            at("socket"),
            at("opt")
        );
        std::fs::write(at("config.toml"), settings).map_err(PeerError::io("write containerd's settings"))?;
        // What it mounts is gone with it.
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "containerd", "--config"]).arg(at("config.toml"));
        let mut process = Process::start(command, &at("log"), "containerd")?;
        until("containerd answers", Duration::from_secs(30), async || {
            process.still_runs()?;
            Ok(ctr(&at("socket"), &["version"]).await?.code == 0)
        })
        .await?;
        Ok(Self { _process: process, folder })
    }

    async fn ctr(&self, arguments: &[&str]) -> Result<Said> {
        ctr(&self.folder.path().join("socket"), arguments).await
    }
}

async fn ctr(socket: &Path, arguments: &[&str]) -> Result<Said> {
    let mut command = tokio::process::Command::new("ctr");
    command.arg("--address").arg(socket).args(arguments).kill_on_drop(true);
    Ok(Said::of(command.output().await.map_err(PeerError::io("run ctr"))?))
}

#[tokio::test]
async fn containerd_takes_the_image_and_runs_what_is_in_it() -> Result<()> {
    let made = made().await?;
    assert_eq!(made.name, format!("localhost/picket:{}", env!("CARGO_PKG_VERSION")));
    let containerd = Containerd::start().await?;
    let imported = containerd.ctr(&["images", "import", &made.archive.display().to_string()]).await?;
    assert_eq!(imported.code, 0, "{imported:?}");
    let listed = containerd.ctr(&["images", "list", &format!("name=={}", made.name)]).await?;
    assert!(listed.out.contains(&made.digest), "{listed:?}");
    let checked = containerd.ctr(&["images", "check"]).await?;
    assert!(checked.out.contains("complete"), "{checked:?}");
    let version = format!(" {}\n", env!("CARGO_PKG_VERSION"));
    for program in ["picketd", "picket", "picket-controller"] {
        // Without a cgroup: who may make one is none of this test's matter.
        let run = ["run", "--rm", "--read-only", "--cgroup", "", &made.name, program, program, "-V"];
        let said = containerd.ctr(&run).await?;
        assert_eq!((said.code, said.out.as_str()), (0, format!("{program}{version}").as_str()), "{said:?}");
    }
    Ok(())
}
