//! Standard output and error: what they are, and in which form answers go there.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::fault::{Failure, Fault};
use crate::global::Format;
use crate::style::{Page, Tone};

/// Where text goes, by name: live progress stands on one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The streams of the process.
#[derive(Debug)]
pub struct Console {
    /// In which form answers are wanted.
    pub format: Format,
    out_is_terminal: bool,
    err_is_terminal: bool,
    colours: bool,
    documents: usize,
    /// Whoever read the output has left (`picket nodes | head`): nothing more goes there, and that is no error.
    closed: bool,
}

impl Console {
    /// Those of this process. Colours: on a terminal, unless `NO_COLOR` is set and not empty, or it is a dumb one.
    pub fn of_process(format: Format) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            format,
            out_is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
            colours: !set("NO_COLOR") && !dumb,
            documents: 0,
            closed: false,
        }
    }

    /// What text on `stream` goes to: a terminal has colours and a width, a pipe neither.
    pub fn page(&self, stream: Stream) -> Page {
        let is_terminal = self.is_terminal(stream);
        Page { colours: self.colours && is_terminal, width: is_terminal.then(|| self.size(stream).0) }
    }

    /// Whether `stream` is a terminal.
    pub fn is_terminal(&self, stream: Stream) -> bool {
        match stream {
            Stream::Out => self.out_is_terminal,
            Stream::Err => self.err_is_terminal,
        }
    }

    /// Columns and lines of the terminal behind `stream`; 80 by 24 where it does not say.
    pub fn size(&self, stream: Stream) -> (usize, usize) {
        let size = match stream {
            Stream::Out => rustix::termios::tcgetwinsize(io::stdout()),
            Stream::Err => rustix::termios::tcgetwinsize(io::stderr()),
        };
        match size {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => (80, 24),
        }
    }

    /// Whether nobody reads the output any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes text as it is.
    pub fn write(&mut self, stream: Stream, text: &str) -> io::Result<()> {
        let written = match stream {
            Stream::Out if self.closed => Ok(()),
            Stream::Out => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            Stream::Err => io::stderr().lock().write_all(text.as_bytes()),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed |= stream == Stream::Out;
                Ok(())
            }
            other => other,
        }
    }

    /// An answer as one document: JSON or YAML. In table form callers render it themselves.
    pub fn document(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = match self.format {
            Format::Yaml => yaml(value)?,
            Format::Json | Format::Table => serde_json::to_string_pretty(value)? + "\n",
        };
        self.documents += 1;
        self.write(Stream::Out, &text)
    }

    /// One of many answers that come over time: one line of JSON, or one YAML document.
    pub fn record(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = match self.format {
            Format::Yaml if self.documents > 0 => format!("---\n{}", yaml(value)?),
            Format::Yaml => yaml(value)?,
            Format::Json | Format::Table => serde_json::to_string(value)? + "\n",
        };
        self.documents += 1;
        self.write(Stream::Out, &text)
    }

    /// Tells that the command failed as a whole: in words on standard error; for scripts also as the document on standard
    /// output, so that nothing there is never taken for an empty answer. `is_stream`: it is the last of many records.
    pub fn failure(&mut self, fault: &Fault, is_stream: bool) {
        self.error(&fault.to_string());
        let told = match self.format {
            Format::Table => Ok(()),
            Format::Json | Format::Yaml if is_stream => self.record(&Failure::from(fault)),
            // There is one document, and it was told.
            Format::Json | Format::Yaml if self.documents > 0 => Ok(()),
            Format::Json | Format::Yaml => self.document(&Failure::from(fault)),
        };
        // Where it cannot be written the words and the exit code say it.
        drop(told);
    }

    /// Tells people of an error, once.
    pub fn error(&mut self, text: &str) {
        let page = self.page(Stream::Err);
        let mut all = String::new();
        for (index, line) in text.lines().enumerate() {
            let head = if index == 0 { "picket: " } else { "        " };
            all += &page.beside(head, head.len(), Tone::Plain, line);
        }
        // Where not even this can be written nobody is left to tell.
        let _ = self.write(Stream::Err, &all);
    }
}

/// As YAML.
pub fn yaml(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_saphyr::to_string(value).map_err(io::Error::other)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_something_else_in_yaml() {
        for text in [
            "0123",
            "1e5",
            "12345678901234567890",
            "00112233445566778899001122334455",
            "12345678e01234567890123456789012",
            "null",
            "~",
            "no",
            "off",
            "On",
            "y",
            "0x1f",
            "0o7",
            "1_000",
            "2026-11-21",
            "12:30:45",
            ".inf",
            "",
            " a ",
            "- a",
            "a: b",
            "#x",
            "{a}",
            "%x",
            "@x",
            "`x`",
            "a\nb",
            "\x1b[2J",
            "'",
            "\"",
            "!x",
            "&x",
            "*x",
            "|",
            ">",
            "=",
            "<<",
        ] {
            let yaml = yaml(&[text]).expect("YAML");
            // Quoted, or a block: nothing that another reader could take for a number, a date or a bool.
            let quoted = yaml.trim_start_matches("- ").starts_with(['"', '\'', '|']);
            assert!(quoted, "{text:?} is written as {yaml:?}");
        }
    }
}
