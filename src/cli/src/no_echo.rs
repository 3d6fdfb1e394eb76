//! A terminal that does not show what is typed: a password, or an Enter that would move the cursor out of a block of lines.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// The terminal does not show what is typed. It is as before once this is dropped.
#[derive(Debug)]
pub struct NoEcho(Termios);

impl NoEcho {
    /// `None`: standard input is no terminal, or this runs in the background.
    pub fn begin() -> Option<Self> {
        let stdin = io::stdin();
        // A process in the background would be stopped for it.
        if tcgetpgrp(&stdin).is_ok_and(|group| group != rustix::process::getpgrp()) {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &quiet).ok()?;
        Some(Self(before))
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        // Where the terminal is gone there is nothing to put back.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
