//! The BMC is asked: by `picketd probe`, so that the driver which would fence is the one that answers.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;

use super::node_request::{Driver, NodeRequest};
use crate::fault::Fault;
use crate::private_folder::PrivateFolder;
use crate::programs;
use crate::style::{Page, Tone, clean};

/// No certificate has this digest: whoever shows one is refused, and the refusal names the digest that was shown.
const NO_CERTIFICATE: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// A driver gives up long before.
const HANGS: Duration = Duration::from_secs(300);
/// Pauses between looks whether the program reads the password: the kernel tells nobody.
const LOOKS: Duration = Duration::from_millis(10);
/// Wrong settings, as in sysexits(3).
const WRONG_SETTINGS: i32 = 78;

/// What `picketd probe --json` says.
#[derive(Debug, Deserialize)]
struct ProbeAnswers {
    devices: Vec<Answer>,
}

/// What it says of a device.
#[derive(Debug, Deserialize, Serialize)]
struct Answer {
    endpoint: String,
    power: Option<String>,
    identity: Option<BTreeMap<String, String>>,
    hold: Option<BTreeMap<String, String>>,
    notes: Vec<String>,
    obstacles: Vec<String>,
    fault: Option<Refusal>,
}

/// Why a call did not succeed.
#[derive(Debug, Deserialize, Serialize)]
struct Refusal {
    kind: String,
    detail: String,
}

/// A driver, and what came of it.
#[derive(Debug)]
pub struct ProbeResult {
    /// Which.
    pub driver: Driver,
    answer: Answer,
    /// The digest of the certificate that was shown, where it is not believed.
    shown: Option<String>,
    allows_suite_3: bool,
    /// Settings that the BMC itself asked for, in a session with a right password.
    pub more: Vec<(&'static str, String)>,
}

/// Asks the BMC by one driver.
///
/// # Errors
/// The settings that would be written are wrong, or the program cannot be run: the BMC was asked nothing.
pub async fn try_one(picketd: &Path, request: &NodeRequest, driver: Driver) -> Result<ProbeResult, Fault> {
    let mut more = Vec::new();
    let mut answer = ask(picketd, request, &request.device(driver, &more)).await?;
    // A service that keeps sessions for longer than by default says for how long.
    if let Some(timeout) = answer.fault.as_ref().and_then(|fault| session_timeout(&fault.detail)) {
        more.push(("session_timeout", timeout));
        answer = ask(picketd, request, &request.device(driver, &more)).await?;
    }
    let is_unbelieved =
        |fault: &Refusal| fault.kind == "authentication" && fault.detail.contains("certificate");
    let asks_again = driver == Driver::Redfish && request.ca.is_none() && request.certificate.is_none();
    let mut shown = None;
    if asks_again && answer.fault.as_ref().is_some_and(is_unbelieved) {
        let pin = [("certificate_sha256", NO_CERTIFICATE.to_owned())];
        let other = ask(picketd, request, &request.device(driver, &pin)).await?;
        shown = other.fault.as_ref().and_then(|fault| digest(&fault.detail));
    }
    Ok(ProbeResult { driver, answer, shown, allows_suite_3: request.allow_suite_3, more })
}

async fn ask(picketd: &Path, request: &NodeRequest, device: &str) -> Result<Answer, Fault> {
    let folder = PrivateFolder::make("init", None)?;
    let file = folder.path().join("picket.toml");
    // It is in no file yet, or in one that only the gateway's user believes.
    let is_handed = request.is_new || picket_permissions::check_secret(&request.password_file).is_err();
    let settings_folder = if is_handed { named_pipe(&folder)? } else { request.password_file.clone() };
    let shown = toml::Value::from(settings_folder.display().to_string());
    let text = format!("[store]\nkind = \"memory\"\n{device}password_file = {shown}\n");
    written(&folder, "picket.toml", text.as_bytes())?;
    let mut command = programs::command(picketd)?;
    command.arg("--config").arg(&file).args(["probe", "--json"]).stdin(Stdio::null()).kill_on_drop(true);
    let failed = |why: &dyn std::fmt::Display| Fault::Failed(format!("{}: {why}", picketd.display()));
    let done = tokio::select! {
        done = tokio::time::timeout(HANGS, command.output()) => done,
        error = hand(&settings_folder, &request.password), if is_handed => return Err(failed(&error)),
        // The folder goes with this call.
        _ = tokio::signal::ctrl_c() => return Err(Fault::Usage("interrupted: nothing was written".to_owned())),
    };
    let output = done.map_err(|_| failed(&"it hangs, and was ended"))?.map_err(|error| failed(&error))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(WRONG_SETTINGS) {
        let said =
            said.trim().trim_start_matches("picketd: ").replace(&file.display().to_string(), "picket.toml");
        return Err(Fault::Usage(format!("{said}\nThe BMC was asked nothing, and nothing was written.")));
    }
    let answers: ProbeAnswers = serde_json::from_slice(&output.stdout).map_err(|_| {
        failed(&format_args!(
            "it says nothing of the BMC; is it of another version? It says: {}",
            said.trim()
        ))
    })?;
    answers.devices.into_iter().next().ok_or_else(|| failed(&"it asked no device"))
}

/// A pipe for its owner alone. By it the password is in no file that a kill leaves behind, and in no environment (S18).
fn named_pipe(folder: &PrivateFolder) -> Result<PathBuf, Fault> {
    let path = folder.path().join("bmc.password");
    let made = mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
    made.map_err(|error| Fault::Failed(format!("{} cannot be made: {error}", path.display())))?;
    Ok(path)
}

/// Gives the password to whoever reads the pipe first. It ends with an error alone.
async fn hand(pipe: &Path, password: &[u8]) -> std::io::Error {
    let mut reader = loop {
        match pipe::OpenOptions::new().open_sender(pipe) {
            Ok(reader) => break reader,
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                tokio::time::sleep(LOOKS).await;
            }
            Err(error) => return error,
        }
    };
    if let Err(error) = reader.write_all(password).await {
        return error;
    }
    // Its end tells the reader that this was all.
    drop(reader);
    std::future::pending().await
}

/// Makes a file for its owner alone, in a folder that is gone after the question.
fn written(folder: &PrivateFolder, name: &str, bytes: &[u8]) -> Result<(), Fault> {
    let path = folder.path().join(name);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let done = made.and_then(|mut made| made.write_all(bytes));
    done.map_err(|error| Fault::Failed(format!("{} cannot be written: {error}", path.display())))
}

/// The setting in the words of a service that keeps its sessions for longer.
fn session_timeout(detail: &str) -> Option<String> {
    let (_, rest) = detail.split_once("set session_timeout = \"")?;
    rest.split_once('"').map(|(timeout, _)| timeout.to_owned())
}

/// The digest in the words of a refusal.
fn digest(detail: &str) -> Option<String> {
    let (_, rest) = detail.split_once("its SHA-256 is ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    (digits.len() == 64).then_some(digits)
}

impl ProbeResult {
    /// The BMC answered, lets the user in, and says nothing that keeps a fence from its end.
    pub fn is_ready(&self) -> bool {
        self.answer.fault.is_none() && self.answer.obstacles.is_empty() && self.answer.power.is_some()
    }

    /// What the BMC says of its machine: which word, and what.
    pub fn identity(&self) -> Option<(&'static str, String)> {
        let said = self.answer.identity.as_ref()?;
        ["uuid", "serial"].into_iter().find_map(|key| Some((key, said.get(key)?.clone())))
    }

    /// Why it cannot be used.
    pub fn reason(&self) -> String {
        match &self.answer.fault {
            Some(fault) => format!("{}: {}", fault.kind.replace('_', " "), fault.detail),
            None => self.answer.obstacles.join("; "),
        }
    }

    /// The argument that the BMC wants, where it is known.
    pub fn more_words(&self, request: &NodeRequest) -> Option<String> {
        match &self.shown {
            // Whoever types it has compared it.
            Some(_) => Some("--bmc-certificate DIGEST".to_owned()),
            None => self.wants_suite_3(request).then(|| "--allow-suite-3".to_owned()),
        }
    }

    /// Some boards refuse without a word of what they have.
    fn wants_suite_3(&self, request: &NodeRequest) -> bool {
        let may_have_3 = ["set cipher_suites = [17, 3]", "it does not say which it offers"];
        let detail = self.answer.fault.as_ref().map_or("", |fault| &fault.detail);
        self.driver == Driver::Ipmi
            && !request.allow_suite_3
            && may_have_3.iter().any(|words| detail.contains(words))
    }

    /// What a person does about it.
    pub fn advice(&self, request: &NodeRequest) -> String {
        let (file, user) = (request.password_file.display(), &request.user);
        let fault = self.answer.fault.as_ref();
        let detail = fault.map_or("", |fault| &fault.detail);
        if let Some(shown) = &self.shown {
            return format!(
                "Compare its certificate's SHA-256 with the one that the BMC's own page or console shows: {shown}. If they are the \
                 same, add: --bmc-certificate {shown}"
            );
        }
        if self.wants_suite_3(request) {
            return "If the BMC's own page says that it has cipher suite 3 and not 17, add: --allow-suite-3"
                .to_owned();
        }
        match (fault.map(|fault| &*fault.kind), self.driver) {
            (Some("unreachable" | "timed_out"), Driver::Ipmi) => format!(
                "Look whether IPMI over LAN is switched on at the BMC, and whether UDP {} passes to {} from here.",
                request.port.unwrap_or(623),
                request.address
            ),
            (Some("unreachable" | "timed_out"), Driver::Redfish) => format!(
                "Look whether the BMC's web server is switched on, and whether it answers from here: curl -k https://{}{}/redfish/v1/",
                request.address,
                request.port.map(|port| format!(":{port}")).unwrap_or_default()
            ),
            (Some("authentication"), Driver::Redfish) if detail.contains("certificate") => {
                "Name the CA of its certificate by --bmc-ca FILE, or the certificate by --bmc-certificate DIGEST.".to_owned()
            }
            (Some("authentication"), _) => {
                format!("Look at the user {user} at the BMC and at the password in {file}, then run the same command again.")
            }
            (Some("forbidden"), Driver::Ipmi) => {
                format!("Give the user {user} the privilege operator at the BMC, also on its LAN channel, then run the same command again.")
            }
            (Some("forbidden") | None, _) => {
                format!("Give the user {user} a role at the BMC that may switch power (Operator), then run the same command again.")
            }
            (Some("settings"), Driver::Redfish) if detail.contains("several systems") => {
                "Name the one of this node by --system ID.".to_owned()
            }
            _ => "docs/troubleshooting.md has errors by their words.".to_owned(),
        }
    }

    /// What was found, for people.
    pub fn told(&self, page: Page) -> String {
        let answer = &self.answer;
        let mut out = String::new();
        let mut line = |tone, text: &str| out += &page.beside("  ", 2, tone, &clean(text));
        match &answer.power {
            Some(power) => line(Tone::Good, &format!("{}: the machine is {power}", answer.endpoint)),
            None => line(Tone::Bad, &format!("{}: {}", answer.endpoint, self.reason())),
        }
        if answer.power.is_some() {
            if self.driver == Driver::Ipmi {
                let suites = match self.allows_suite_3 {
                    true => "one of the cipher suites 17 and 3, which the settings allow",
                    false => "cipher suite 17",
                };
                line(Tone::Plain, &format!("it takes {suites}, and the privilege operator"));
            }
            if self.driver == Driver::Redfish && answer.obstacles.is_empty() {
                line(
                    Tone::Plain,
                    "whether its user may switch power is known at the first off: run a drill before you rely on it",
                );
            }
            match self.identity() {
                Some((key, said)) => {
                    line(Tone::Plain, &format!("it says that it controls the machine with the {key} {said}"))
                }
                None => line(
                    Tone::Busy,
                    "it does not say which machine it controls: the evidence of a fence is graded claimed",
                ),
            }
            match answer.hold.as_ref().filter(|hold| !hold.is_empty()) {
                Some(hold) => {
                    let all: Vec<String> = hold.iter().map(|(key, value)| format!("{key} {value}")).collect();
                    line(
                        Tone::Plain,
                        &format!(
                            "a fence tries to hold it off, which the BMC may refuse then; now it has {}",
                            all.join(", ")
                        ),
                    );
                }
                None => line(Tone::Busy, "it cannot be told to stay off"),
            }
        }
        answer.notes.iter().for_each(|note| line(Tone::Busy, &format!("note: {note}")));
        answer.obstacles.iter().for_each(|obstacle| line(Tone::Bad, &format!("obstacle: {obstacle}")));
        if let (Some(_), Some(fault)) = (&answer.power, &answer.fault) {
            line(Tone::Bad, &format!("{}: {}", fault.kind.replace('_', " "), fault.detail));
        }
        out
    }

    /// The same for scripts.
    pub fn document(&self) -> serde_json::Value {
        json!({ "driver": self.driver.to_string(), "ready": self.is_ready(), "certificate_sha256": self.shown, "answer": self.answer })
    }
}

#[cfg(test)]
mod tests;
