//! Who asks: the command line over all gateways, again with the same key until there is an end, as a script would.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use picket_tests::{PeerError, Result, Said, program};
use tokio::time::{Instant, sleep};

/// The longest that it asks for one thing: what is waited out in the worst case (a release of 65 s, sessions, another one
/// after each death) and then some.
const LONGEST: Duration = Duration::from_secs(420);
const PAUSE: Duration = Duration::from_millis(200);

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As it was asked for.
    Done,
    /// A person has to look; why.
    Person(String),
}

/// A caller of all gateways.
#[derive(Clone, Debug)]
pub struct Caller {
    endpoints: Vec<String>,
    asked: PathBuf,
}

impl Caller {
    pub fn new(endpoints: Vec<String>, asked: PathBuf) -> Self {
        Self { endpoints, asked }
    }

    /// Where stands what it asked for.
    pub fn asked(&self) -> PathBuf {
        self.asked.clone()
    }

    /// Fences the node.
    pub async fn fence(&self, node: &str, key: &str) -> Result<End> {
        self.note("fence", node)?;
        self.until_the_end(&["fence", node, "--yes", "--reason", "a test", "--patience", "60s"], key).await
    }

    /// Brings it back.
    pub async fn unfence(&self, node: &str, key: &str) -> Result<End> {
        self.note("unfence", node)?;
        self.until_the_end(&["unfence", node, "--yes", "--reason", "over", "--patience", "60s"], key).await
    }

    /// Before it is asked for: the judge holds against Picket what happened before that.
    fn note(&self, what: &str, node: &str) -> Result<()> {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let line = format!("{{\"at\": {at}, \"what\": \"{what}\", \"node\": \"{node}\"}}\n");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.asked);
        file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(PeerError::io("note what is asked"))
    }

    async fn until_the_end(&self, arguments: &[&str], key: &str) -> Result<End> {
        let deadline = Instant::now() + LONGEST;
        let mut last = String::new();
        for turn in 0.. {
            // What was overtaken is asked for anew.
            let key = if last.starts_with("overtaken") { format!("{key}-{turn}") } else { key.to_owned() };
            let said = self.picket(&[arguments, &["--key", &key]].concat()).await?;
            last = match said.code {
                0 => return Ok(End::Done),
                4 => return Ok(End::Person(said.out + &said.err)),
                8 => format!("overtaken: {said:?}"),
                // Blocked, unreachable or without its store, not within the patience: not yet.
                3 | 5 | 10 => format!("{said:?}"),
                _ => {
                    let (program, status) = (arguments.join(" "), said.code.to_string());
                    return Err(PeerError::Ended { program, status, output: format!("{said:?}") });
                }
            };
            if Instant::now() >= deadline {
                break;
            }
            sleep(PAUSE).await;
        }
        Err(PeerError::TimedOut { what: arguments.join(" "), within: LONGEST, seen: last })
    }

    /// `picket` once.
    pub async fn picket(&self, arguments: &[&str]) -> Result<Said> {
        let mut command = tokio::process::Command::new(program("picket")?);
        command.arg("--endpoint").arg(self.endpoints.join(",")).args(arguments);
        let output = command
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(PeerError::io(format!("run picket {}", arguments.join(" "))))?;
        Ok(Said::of(output))
    }
}
