//! The bench's own children: told by lines what to do, and asked by lines what became of it.
//!
//! They end when nobody can tell them anything any more, so that none outlives the bench.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use crate::Wrong;
use crate::options::Child as What;

/// A child with its ends of the lines.
pub struct Child {
    process: std::process::Child,
    tell: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Child {
    /// Starts one for these BMCs.
    pub fn start(what: &What, bmcs: &[SocketAddr]) -> Result<Self, Wrong> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(what.word()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let (Some(mut tell), Some(hear)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a child without its lines".into());
        };
        let addresses: Vec<String> = bmcs.iter().map(SocketAddr::to_string).collect();
        writeln!(tell, "{}", addresses.join(" "))?;
        Ok(Self { process, tell, hear: BufReader::new(hear) })
    }

    /// What it says next.
    pub fn heard(&mut self) -> Result<String, Wrong> {
        let mut line = String::new();
        match self.hear.read_line(&mut line)? {
            0 => Err(format!("a child of the bench ended: {:?}", self.process.wait()?).into()),
            _ => Ok(line.trim().to_owned()),
        }
    }

    /// Tells it something, and what it answers.
    pub fn ask(&mut self, word: &str) -> Result<String, Wrong> {
        writeln!(self.tell, "{word}")?;
        self.heard()
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// In a child: its BMCs.
pub fn addresses() -> Result<Vec<SocketAddr>, Wrong> {
    let line = told()?.ok_or("no BMCs were told")?;
    Ok(line.split(' ').map(str::parse).collect::<Result<_, _>>()?)
}

/// In a child: what it is told next; `None` when the bench has ended.
pub fn told() -> Result<Option<String>, Wrong> {
    let mut line = String::new();
    let read = tokio::task::block_in_place(|| std::io::stdin().read_line(&mut line))?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

/// In a child: an answer.
pub fn say(answer: &str) -> Result<(), Wrong> {
    let mut out = std::io::stdout();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}
