//! Somebody else's hand at an emulator's machines (`tests/peers/sushy_hand.py`): one process for all that is asked of it, as Python
//! takes longer to begin than to look.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::error::{PeerError, Result};
use crate::peers::{peer_file, python};

/// It ends with its value, or with whoever holds the other end of its pipe.
#[derive(Debug)]
pub(super) struct Hand {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Hand {
    pub(super) fn at(directory: &Path) -> Result<Self> {
        let mut command = Command::new(python::interpreter()?);
        command.arg(peer_file("sushy_hand.py")).arg(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(PeerError::io("run python"))?;
        let (asks, answers) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Ok(Self { child, asks, answers: BufReader::new(answers) })
    }

    /// What it says to that word about that machine.
    pub(super) fn ask(&mut self, system: &str, word: &str) -> Result<String> {
        let mut said = String::new();
        let asked = writeln!(self.asks, "{system} {word}").and_then(|()| self.answers.read_line(&mut said));
        asked.map_err(PeerError::io(format!("ask sushy_hand.py: {word}")))?;
        assert!(said.ends_with('\n'), "sushy_hand.py ended at {word:?}; its error stands above");
        Ok(said.trim_end().to_owned())
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
