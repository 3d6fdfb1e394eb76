//! How reloads of the settings went, for whoever waits for one: `picketd reload`, which the systemd unit runs.
//!
//! A signal tells nobody what becomes of it, and `Type=notify-reload` exists since systemd 253 alone. The running picketd
//! writes of each reload into a file of its runtime directory, and the waiting one reads there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::failure::Failure;

/// The file in the runtime directory.
const FILE: &str = "reloads.json";
/// How often the waiting one looks.
const LOOK: Duration = Duration::from_millis(50);
/// How long it waits: settings of ten thousand nodes take seconds. systemd waits for longer (TimeoutStartSec).
const LONGEST: Duration = Duration::from_secs(240);

/// What stands in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ReloadReport {
    /// Of which process.
    pid: u32,
    /// So many reloads have begun since it started.
    begun: u64,
    /// So many of them have ended.
    ended: u64,
    /// Why the last one was refused.
    refused: Option<String>,
}

impl ReloadReport {
    fn written(&self) -> String {
        let Self { pid, begun, ended, refused } = self;
        json!({ "pid": pid, "begun": begun, "ended": ended, "refused": refused }).to_string()
    }

    fn read(directory: &Path) -> Result<Self, String> {
        let file = directory.join(FILE);
        let wrong = |why: String| format!("{}: {why}", file.display());
        let text = std::fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
        let told: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let number = |key: &str| told[key].as_u64().ok_or_else(|| wrong(format!("{key} is no number")));
        Ok(Self {
            pid: u32::try_from(number("pid")?).map_err(|error| wrong(error.to_string()))?,
            begun: number("begun")?,
            ended: number("ended")?,
            refused: told["refused"].as_str().map(str::to_owned),
        })
    }
}

/// The runtime directory that systemd gives to a unit; the first of several.
fn directory() -> Option<PathBuf> {
    let named = std::env::var("RUNTIME_DIRECTORY").ok()?;
    named.split(':').next().filter(|first| !first.is_empty()).map(PathBuf::from)
}

/// Tells how reloads go.
#[derive(Debug)]
pub(crate) struct Reloads {
    directory: Option<PathBuf>,
    told: ReloadReport,
}

impl Reloads {
    /// In the runtime directory; without one nobody is told.
    pub(crate) fn of_process() -> Self {
        Self::within(directory())
    }

    fn within(directory: Option<PathBuf>) -> Self {
        let reloads =
            Self { directory, told: ReloadReport { pid: std::process::id(), ..ReloadReport::default() } };
        reloads.tell();
        reloads
    }

    /// A reload begins; nothing of the settings has been read yet.
    pub(crate) fn begin(&mut self) {
        self.told.begun += 1;
        self.tell();
    }

    /// It has ended: the settings hold, or were refused.
    pub(crate) fn end(&mut self, outcome: &Result<(), String>) {
        self.told.ended = self.told.begun;
        self.told.refused = outcome.as_ref().err().cloned();
        self.tell();
    }

    fn tell(&self) {
        let Some(directory) = &self.directory else { return };
        // Half a file is never read: another one takes its place as a whole.
        let new = directory.join(format!("{FILE}.new"));
        let told = std::fs::write(&new, self.told.written());
        if let Err(error) = told.and_then(|()| std::fs::rename(&new, directory.join(FILE))) {
            tracing::warn!(%error, directory = %directory.display(), "who waits for a reload cannot be told of it");
        }
    }
}

/// Asks the unit's picketd for a reload, and waits until it has ended.
///
/// # Errors
/// The settings were refused; or nothing is known of it.
pub(crate) fn ask() -> Result<(), Failure> {
    let (Some(pid), Some(directory)) = (main_pid(), directory()) else {
        return Err(Failure::Refused(
            "reload is for ExecReload= of the systemd unit, which sets MAINPID and RUNTIME_DIRECTORY: run \
             systemctl reload picketd; without systemd send SIGHUP to picketd, and see its log"
                .to_owned(),
        ));
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(Failure::Start)?;
    let signal =
        || kill_process(pid, Signal::HUP).map_err(|error| format!("picketd cannot be signalled: {error}"));
    let lives = || test_kill_process(pid).is_ok();
    let number = u32::try_from(pid.as_raw_pid()).unwrap_or_default();
    let waited = runtime
        .block_on(async { tokio::time::timeout(LONGEST, outcome(&directory, number, signal, lives)).await });
    waited.unwrap_or_else(|_| {
        Err(Failure::Later(format!(
            "picketd has not ended its reload within {} s: see its log",
            LONGEST.as_secs()
        )))
    })
}

fn main_pid() -> Option<Pid> {
    Pid::from_raw(std::env::var("MAINPID").ok()?.parse().ok()?)
}

/// The outcome of the first reload that begins after `signal`.
async fn outcome(
    directory: &Path,
    pid: u32,
    signal: impl FnOnce() -> Result<(), String>,
    lives: impl Fn() -> bool,
) -> Result<(), Failure> {
    let read = || match ReloadReport::read(directory) {
        Ok(told) if told.pid == pid => Ok(told),
        Ok(told) => Err(Failure::Later(format!(
            "picketd {pid} was asked for a reload, and picketd {} runs",
            told.pid
        ))),
        Err(why) => Err(Failure::Later(format!("how a reload goes cannot be read: {why}"))),
    };
    // One that is under way may have read the settings before they were changed.
    let before = read()?.begun;
    signal().map_err(Failure::Later)?;
    loop {
        let told = read()?;
        if told.ended > before {
            return told.refused.map_or(Ok(()), |why| Err(Failure::Kept(why)));
        }
        if !lives() {
            return Err(Failure::Later(format!("picketd {pid} ended while it was asked for a reload")));
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(ended: Result<(), Failure>) -> u8 {
        ended.map_or_else(|failure| failure.code(), |()| 0)
    }

    fn own() -> u32 {
        std::process::id()
    }

    #[tokio::test]
    async fn the_outcome_is_that_of_a_reload_that_began_after_it_was_asked_for() {
        let home = tempfile::tempdir().expect("a directory");
        let mut reloads = Reloads::within(Some(home.path().to_owned()));
        reloads.begin();
        let (asked, was_asked) = tokio::sync::oneshot::channel();
        let waiting = outcome(home.path(), own(), || asked.send(()).map_err(|()| "gone".to_owned()), || true);
        let plays = async {
            was_asked.await.expect("asked");
            // The one that was under way is none of ours, however it ends.
            reloads.end(&Err("the old fault".to_owned()));
            tokio::time::sleep(LOOK * 3).await;
            reloads.begin();
            tokio::time::sleep(LOOK * 3).await;
            reloads.end(&Ok(()));
        };
        let (ended, ()) = tokio::join!(waiting, plays);
        assert_eq!(code(ended), 0);
    }

    #[tokio::test]
    async fn refused_settings_are_told_with_their_faults() {
        let home = tempfile::tempdir().expect("a directory");
        let mut reloads = Reloads::within(Some(home.path().to_owned()));
        let reload = || {
            reloads.begin();
            reloads.end(&Err("picket.toml: [rules] dwell is too short".to_owned()));
            Ok(())
        };
        let failure = outcome(home.path(), own(), reload, || true).await.expect_err("refused");
        assert_eq!(failure.code(), 78);
        assert!(failure.to_string().ends_with("[rules] dwell is too short"), "{failure}");
    }

    #[tokio::test]
    async fn nothing_is_taken_for_an_end_that_was_not_told() {
        let home = tempfile::tempdir().expect("a directory");
        assert_eq!(code(outcome(home.path(), own(), || Ok(()), || true).await), 75, "nobody tells");
        let _reloads = Reloads::within(Some(home.path().to_owned()));
        assert_eq!(
            code(outcome(home.path(), own() + 1, || Ok(()), || true).await),
            75,
            "another process tells"
        );
        assert_eq!(code(outcome(home.path(), own(), || Ok(()), || false).await), 75, "it ended");
        let refused = || Err("not permitted".to_owned());
        assert_eq!(code(outcome(home.path(), own(), refused, || true).await), 75, "it cannot be asked");
    }
}
