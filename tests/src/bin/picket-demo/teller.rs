//! How the story is told on a terminal.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Prints chapters, words and commands; colours only on a terminal, and not where `NO_COLOR` is set.
#[derive(Debug)]
pub struct Teller {
    colours: bool,
    began: Instant,
}

impl Teller {
    /// A story begins now.
    pub fn new() -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { colours, began: Instant::now() }
    }

    /// A new chapter, with the seconds since the story began.
    pub fn chapter(&self, title: &str) {
        let seconds = self.began.elapsed().as_secs();
        self.line(&format!("\n{} {}", self.styled("1", title), self.styled("2", &format!("({seconds} s)"))));
    }

    /// A sentence of the narrator's.
    pub fn say(&self, words: &str) {
        self.line(&format!("  {words}"));
    }

    /// What somebody else than Picket saw.
    pub fn seen(&self, words: &str) {
        self.line(&format!("  {} {words}", self.styled("32", "observer:")));
    }

    /// A command line, as the reader would type it.
    pub fn command(&self, line: &str) {
        self.line(&format!("\n  {}", self.styled("36", &format!("$ {line}"))));
    }

    /// A line for the reader to type or copy: nothing stands before it but space.
    pub fn copy(&self, line: &str) {
        self.line(&format!("    {}", self.styled("36", line)));
    }

    /// Text of another program, indented.
    pub fn quote(&self, text: &str) {
        for line in text.lines() {
            self.line(&format!("  │ {line}"));
        }
    }

    fn line(&self, text: &str) {
        // Whoever listened may have gone (a pipe into head); the story is over for them.
        let _ = writeln!(std::io::stdout(), "{text}");
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
