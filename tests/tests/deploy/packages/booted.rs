//! A Debian that boots in a virtual machine: its own kernel, its own systemd, no network. Wants root, which alone gives files to others.
//!
//! It is told what to run through QEMU's guest agent, which Debian packages: a line of JSON each way over a serial port.
//! The processor is emulated, as everywhere in these tests: a `/dev/kvm` may be there and run no kernel.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use picket_tests::peers::{HANGS, Process, until};
use picket_tests::{PeerError, Result, Said};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::succeeds;

/// After so long it hangs: an emulated boot takes half a minute where few others work, and minutes beside all other tests.
const BOOT_HANGS: Duration = Duration::from_secs(900);

/// A system that runs. Dropped, its machine is gone at once, and all that was on its disk.
pub struct Debian {
    agent: BufReader<UnixStream>,
    // Ends before its folder goes.
    machine: Process,
    folder: TempDir,
}

impl Debian {
    /// Boots the one of that name, which `cargo xtask test` has made, with these files at these paths.
    pub async fn boot(suite: &str, brought: &[(String, PathBuf)]) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(PeerError::io("create a folder for a machine"))?;
        disk(folder.path(), suite, brought)?;
        let (machine, agent) = switched_on(folder.path()).await?;
        let mut system = Self { agent, machine, folder };
        system.is_up().await?;
        Ok(system)
    }

    /// Lets it end what runs, and boots what is on its disk then.
    pub async fn boots_again(&mut self) -> Result<()> {
        // Its end is not told: the agent ends with the rest.
        self.ask("guest-exec", json!({ "path": "systemctl", "arg": ["reboot"] })).await?;
        self.machine.wait(BOOT_HANGS).await?;
        (self.machine, self.agent) = switched_on(self.folder.path()).await?;
        self.is_up().await
    }

    async fn is_up(&mut self) -> Result<()> {
        let said = self.runs(&["systemctl", "is-system-running", "--wait"]).await?;
        assert_eq!(said.out.trim(), "running", "{said:?}\n{}", self.console());
        Ok(())
    }

    /// What its kernel and its systemd had to say.
    fn console(&self) -> String {
        console(self.folder.path())
    }

    /// Runs a command as root, to its end.
    pub async fn runs(&mut self, words: &[&str]) -> Result<Said> {
        let (program, rest) = words.split_first().expect("it names a program");
        let how = json!({ "path": program, "arg": rest, "capture-output": true });
        let begun = self.ask("guest-exec", how).await?;
        let mut status = Value::Null;
        until(&format!("{words:?} ends"), HANGS, async || {
            status = self.ask("guest-exec-status", json!({ "pid": begun["pid"] })).await?;
            Ok(status["exited"] == true)
        })
        .await?;
        let said = |stream: &str| {
            let bytes =
                base64::engine::general_purpose::STANDARD.decode(status[stream].as_str().unwrap_or(""));
            String::from_utf8_lossy(&bytes.expect("base64")).into_owned()
        };
        let code = status["exitcode"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(-1);
        Ok(Said { code, out: said("out-data"), err: said("err-data") })
    }

    /// The same of a command that does not fail.
    pub async fn succeeds(&mut self, words: &[&str]) -> Result<Said> {
        let said = self.runs(words).await?;
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        Ok(said)
    }

    /// Writes a file of root's.
    pub async fn write(&mut self, path: &str, text: &str) -> Result<()> {
        self.succeeds(&["sh", "-c", "printf %s \"$1\" >\"$0\"", path, text]).await.map(drop)
    }

    /// Whether there is a file or a folder.
    pub async fn has(&mut self, path: &str) -> Result<bool> {
        Ok(self.runs(&["test", "-e", path]).await?.code == 0)
    }

    async fn ask(&mut self, what: &str, how: Value) -> Result<Value> {
        let seen = console(self.folder.path());
        ask(&mut self.agent, what, how, seen).await
    }
}

/// Makes its disk, and puts kernel and initrd beside it.
fn disk(folder: &Path, suite: &str, brought: &[(String, PathBuf)]) -> Result<()> {
    let what = "systems to install in (PICKET_TEST_ROOTS: cargo xtask test makes them)".to_owned();
    let roots = std::env::var_os("PICKET_TEST_ROOTS");
    let roots = roots.ok_or(PeerError::Missing { what, package: "mmdebstrap" })?;
    let root = folder.join("root");
    std::fs::create_dir(&root).map_err(PeerError::io("create a folder for a system"))?;
    let mut unpack = Command::new("tar");
    unpack.args(["--extract", "--numeric-owner", "--file"]);
    unpack.arg(Path::new(&roots).join(format!("{suite}.tar"))).arg("--directory").arg(&root);
    succeeds(unpack)?;
    let put = |from: &Path, to: &Path| {
        let what = format!("copy {} to {}", from.display(), to.display());
        std::fs::copy(from, to).map(drop).map_err(PeerError::io(what))
    };
    for (path, file) in brought {
        put(file, &root.join(path.trim_start_matches('/')))?;
    }
    for name in ["vmlinuz", "initrd.img"] {
        put(&root.join(name), &folder.join(name))?;
    }
    let mut make = Command::new("mke2fs");
    make.args(["-q", "-t", "ext4", "-d"]).arg(&root).arg(folder.join("disk.img")).arg("4G");
    succeeds(make)?;
    std::fs::remove_dir_all(&root).map_err(PeerError::io("remove what is on the disk now"))
}

/// The machine of a folder, and the agent in it once it answers.
async fn switched_on(folder: &Path) -> Result<(Process, BufReader<UnixStream>)> {
    let port = folder.join("agent");
    let mut command = Command::new("qemu-system-x86_64");
    command.current_dir(folder);
    // A reboot ends it, and it is switched on anew: so the end of the old system is known.
    command.args(["-accel", "tcg", "-cpu", "max", "-m", "768", "-nodefaults", "-nic", "none", "-no-reboot"]);
    command.args(["-display", "none", "-serial", "file:console"]);
    command.args(["-kernel", "vmlinuz", "-initrd", "initrd.img"]);
    command.args(["-append", "root=/dev/vda rw console=ttyS0 panic=-1 quiet"]);
    command.args(["-drive", "file=disk.img,format=raw,if=virtio,cache=unsafe"]);
    command.args(["-device", "virtio-serial", "-chardev"]);
    command.arg(format!("socket,id=agent,server=on,wait=off,path={}", port.display()));
    command.args(["-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"]);
    let mut machine = Process::start(command, &folder.join("qemu.log"), "qemu-system-x86")?;
    let mut stream = None;
    until("a machine begins", HANGS, async || {
        machine.still_runs()?;
        stream = UnixStream::connect(&port).await.ok();
        Ok(stream.is_some())
    })
    .await?;
    let mut agent = BufReader::new(stream.expect("it was connected"));
    // The port holds the question until there is somebody.
    ask(&mut agent, "guest-ping", json!({}), console(folder)).await?;
    Ok((machine, agent))
}

fn console(folder: &Path) -> String {
    let bytes = std::fs::read(folder.join("console")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn ask(agent: &mut BufReader<UnixStream>, what: &str, how: Value, seen: String) -> Result<Value> {
    let line = format!("{}\n", json!({ "execute": what, "arguments": how }));
    let mut answer = String::new();
    let asked = async {
        agent.write_all(line.as_bytes()).await?;
        agent.read_line(&mut answer).await
    };
    let missing = || PeerError::TimedOut { what: format!("the answer to {line}"), within: BOOT_HANGS, seen };
    timeout(BOOT_HANGS, asked).await.map_err(|_| missing())?.map_err(PeerError::io(line.clone()))?;
    let told: Value = serde_json::from_str(&answer).unwrap_or_default();
    let refused = || PeerError::Ended { program: line, status: "refused".to_owned(), output: answer };
    told.get("return").cloned().ok_or_else(refused)
}
