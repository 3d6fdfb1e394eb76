//! The two programs of a tour: `picket-fleet`, and `picketd` before it.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixDatagram;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::failed;
use crate::fault::Fault;
use crate::programs;

/// A start that takes longer hangs.
const START: Duration = Duration::from_secs(60);
/// An end that takes longer is made one.
const END: Duration = Duration::from_secs(10);
/// Between two questions whether the gateway leads.
const AGAIN: Duration = Duration::from_millis(200);
/// So many lines of a log stand in an error.
const TAIL: usize = 8;

/// What the simulated BMCs ask for. It guards nothing: they answer on the loopback, and control no machine.
const PASSWORD: &str = "secret12";

/// The machines: port 0, so that several tours run beside one another.
const FLEET: &str = r#"# Written by picket quickstart: simulated machines, whose BMCs answer on this machine's loopback.
# What else they can do: docs/rehearse-settings.md.

[accounts.operator]
password = "secret12"
role = "operator"

[groups.rack1]
count = 3
ipmi = "127.0.0.1:0"
faults = [{ off_takes = { least = "2s", most = "3s" } }]

# This BMC acknowledges each off, ignores it, and says Off from then on.
[groups.worst]
count = 1
ipmi = "127.0.0.4:0"
faults = ["off_lied"]
"#;

/// A machine, and where its BMC answers.
type ListenAddress = (String, SocketAddr);

/// Both programs, in one folder.
#[derive(Debug)]
pub struct DemoPrograms {
    directory: PathBuf,
    fleet: Option<Child>,
    gateway: Option<Child>,
    /// The command of the step that is shown.
    step: Option<Child>,
    /// The gateway tells here also that it ends.
    notify: Option<UnixDatagram>,
}

impl DemoPrograms {
    /// Nothing is started yet.
    pub fn of(directory: PathBuf) -> Self {
        Self { directory, fleet: None, gateway: None, step: None, notify: None }
    }

    /// Where the files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the gateway answers.
    pub fn endpoint(&self) -> String {
        format!("unix:{}", self.place("picket.sock").display())
    }

    /// The process of the fleet.
    pub fn fleet_id(&self) -> Option<u32> {
        self.fleet.as_ref().and_then(Child::id)
    }

    /// Starts both, and waits until they serve.
    ///
    /// # Errors
    /// One of them does not start: the end of its log says why.
    pub async fn start(&mut self, gateway: &Path, fleet: &Path) -> Result<(), Fault> {
        self.write("fleet.toml", FLEET)?;
        let places = self.start_fleet(fleet).await?;
        self.write("bmc.password", PASSWORD)?;
        self.write("picket.toml", &settings(&self.directory, &places))?;
        self.start_gateway(gateway).await
    }

    async fn start_fleet(&mut self, program: &Path) -> Result<Vec<ListenAddress>, Fault> {
        let (mut log, errors) = self.log("fleet.log")?;
        let mut command = programs::command(program)?;
        command.arg(self.place("fleet.toml")).stdout(Stdio::piped()).stderr(errors);
        let mut child = spawn(command, program)?;
        let out = child.stdout.take();
        self.fleet = Some(child);
        let mut lines = out.map(|out| BufReader::new(out).lines());
        let ready = async { until_ready(lines.as_mut()?, &mut log).await };
        match timeout(START, ready).await {
            Ok(Some(places)) => {
                // Also later it finds somebody who reads: else its next word would end it.
                tokio::spawn(async move { keep(lines, log).await });
                Ok(places)
            }
            _ => Err(self.not_started("picket-fleet", "fleet.log")),
        }
    }

    async fn start_gateway(&mut self, program: &Path) -> Result<(), Fault> {
        let place = self.place("notify.sock");
        let notify = self.notify.insert(UnixDatagram::bind(&place).map_err(failed("make notify.sock"))?);
        let log = log(&self.directory, "picketd.log")?;
        let mut command = programs::command(program)?;
        command.arg("--config").arg(self.directory.join("picket.toml")).env("NOTIFY_SOCKET", &place);
        // A watchdog that somebody set for another process would be told here.
        command.env_remove("WATCHDOG_USEC").stdout(log.0).stderr(log.1);
        let child = self.gateway.insert(spawn(command, program)?);
        let serves = async {
            let mut words = [0; 512];
            loop {
                tokio::select! {
                    heard = notify.recv(&mut words) => match heard {
                        Ok(count) if words.get(..count).is_some_and(|words| words.starts_with(b"READY=1")) => return true,
                        Ok(_) => {}
                        Err(_) => return false,
                    },
                    _ = child.wait() => return false,
                }
            }
        };
        match timeout(START, serves).await {
            Ok(true) => {}
            _ => return Err(self.not_started("picketd", "picketd.log")),
        }
        // It serves before it leads, and knows its devices once it has asked them.
        match timeout(START, self.checked()).await {
            Ok(done) => done,
            Err(_) => Err(self.not_started("picketd", "picketd.log")),
        }
    }

    async fn checked(&self) -> Result<(), Fault> {
        loop {
            let mut check = self.picket(&["check"])?;
            let status = check.stdout(Stdio::null()).stderr(Stdio::null()).status().await;
            if status.map_err(failed("run picket check"))?.success() {
                return Ok(());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The running `picket` with these words, before this gateway.
    fn picket(&self, words: &[&str]) -> Result<Command, Fault> {
        let own = std::env::current_exe().map_err(failed("find the running picket"))?;
        let mut command = programs::command(&own)?;
        command.args(words).env("PICKET_ENDPOINT", self.endpoint()).kill_on_drop(true);
        Ok(command)
    }

    /// Runs a command of a step to its end.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn run(&mut self, words: &[&str]) -> Result<ExitStatus, Fault> {
        let child = self.picket(words)?.spawn().map_err(failed("run picket"))?;
        let ended = self.step.insert(child).wait().await;
        self.step = None;
        ended.map_err(failed("wait for picket"))
    }

    /// Ends all of it, and waits for the ends: first a step, which leaves the terminal as it was, and the fleet last.
    pub async fn end(&mut self) {
        for mut child in [self.step.take(), self.gateway.take(), self.fleet.take()].into_iter().flatten() {
            let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            // It was not waited for yet, so the number is its own.
            if let Some(pid) = pid {
                let _ = kill_process(pid, Signal::TERM);
            }
            if timeout(END, child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
        }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Fault> {
        let wrong =
            |error| Fault::Failed(format!("{} cannot be written: {error}", self.place(name).display()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.place(name));
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(wrong)
    }

    fn log(&self, name: &str) -> Result<(File, File), Fault> {
        log(&self.directory, name)
    }

    fn not_started(&self, program: &str, log: &str) -> Fault {
        let path = self.place(log);
        let said = std::fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let said = lines.get(lines.len().saturating_sub(TAIL)..).unwrap_or_default().join("\n");
        Fault::Failed(format!("{program} did not start; {} says:\n{said}", path.display()))
    }
}

/// A log, twice: for what a program says, and for its errors.
fn log(directory: &Path, name: &str) -> Result<(File, File), Fault> {
    let wrong = |error: io::Error| Fault::Failed(format!("{}: {error}", directory.join(name).display()));
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(directory.join(name));
    file.and_then(|file| Ok((file.try_clone()?, file))).map_err(wrong)
}

/// Starts it away from the terminal: Ctrl-C is for whoever ends it in order.
fn spawn(mut command: Command, program: &Path) -> Result<Child, Fault> {
    let child = command.stdin(Stdio::null()).process_group(0).kill_on_drop(true).spawn();
    child.map_err(|error| Fault::Failed(format!("{} cannot be started: {error}", program.display())))
}

/// Reads where each BMC answers, until all do; `None`: the fleet ended before.
async fn until_ready(
    lines: &mut Lines<BufReader<ChildStdout>>,
    log: &mut File,
) -> Option<Vec<ListenAddress>> {
    let mut places = Vec::new();
    while let Some(line) = lines.next_line().await.ok()? {
        writeln!(log, "{line}").ok()?;
        if line.starts_with("ready: ") {
            return Some(places);
        }
        places.extend(place(&line));
    }
    None
}

/// `rack1-1 ipmi 127.0.0.1:40123`.
fn place(line: &str) -> Option<ListenAddress> {
    let mut words = line.split(' ');
    let (name, protocol, address) = (words.next()?, words.next()?, words.next()?);
    (protocol == "ipmi").then(|| Some((name.to_owned(), address.parse().ok()?)))?
}

async fn keep(lines: Option<Lines<BufReader<ChildStdout>>>, mut log: File) {
    let Some(mut lines) = lines else { return };
    while let Ok(Some(line)) = lines.next_line().await {
        // A full disk loses a line of the log, and nothing else.
        let _ = writeln!(log, "{line}");
    }
}

/// The settings of a gateway before these machines.
fn settings(directory: &Path, places: &[ListenAddress]) -> String {
    let path = |name: &str| toml::Value::from(directory.join(name).display().to_string());
    let mut text = format!(
        "# Written by picket quickstart. Every setting stands in deploy/picket.example.toml.\n\n\
         [gateway]\nname = \"quickstart\"\nsimulated = true    # it switches no real machine, and lets nothing go\n\n\
         [listen]\nunix = {}\n\n\
         [store]\npath = {}\n\n\
         [templates.simulated.devices.bmc]\ndriver = \"ipmi\"\nusername = \"operator\"\npassword_file = {}\n",
        path("picket.sock"),
        path("picket.redb"),
        path("bmc.password"),
    );
    for (name, address) in places {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n[nodes.{name}]\ntemplate = \"simulated\"\ndevices.bmc = {{ host = \"{}\", port = {} }}\n",
            address.ip(),
            address.port()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_line_of_ipmi_and_nothing_else() {
        let at = |line| place(line).map(|(name, address)| format!("{name} {address}"));
        assert_eq!(at("rack1-1 ipmi 127.0.0.1:40123"), Some("rack1-1 127.0.0.1:40123".to_owned()));
        for line in ["rack1-1 redfish 127.0.0.1:1", "ready: 4 machines", "rack1-1 ipmi nowhere", ""] {
            assert_eq!(at(line), None, "{line}");
        }
    }

    #[test]
    fn settings_are_toml_whatever_the_folder_is_called_and_say_that_they_are_simulated() {
        let places = [("rack1-1".to_owned(), "127.0.0.1:4123".parse().expect("an address"))];
        let text = settings(Path::new("/tmp/a \"b\""), &places);
        let read: toml::Table = text.parse().expect("TOML");
        assert_eq!(read["gateway"]["simulated"].as_bool(), Some(true));
        assert_eq!(read["store"]["path"].as_str(), Some("/tmp/a \"b\"/picket.redb"));
        assert_eq!(read["nodes"]["rack1-1"]["devices"]["bmc"]["port"].as_integer(), Some(4123));
        assert!(FLEET.parse::<toml::Table>().is_ok());
    }
}
