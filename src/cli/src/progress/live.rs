//! Live progress: a block of lines that is rewritten in place.

use std::io;

use tokio::time::Instant;

use super::frame::frame;
use crate::console::{Console, Stream};
use crate::motion::NodeProgress;
use crate::no_echo::NoEcho;

/// Lines of the terminal that are left to others.
const SPARE: usize = 2;

/// The lines on the terminal.
#[derive(Debug)]
pub struct LiveBlock {
    stream: Stream,
    /// How many columns each line that stands there has.
    drawn: Vec<usize>,
    _quiet: Option<NoEcho>,
}

impl LiveBlock {
    /// Nothing drawn yet.
    pub fn new(stream: Stream) -> Self {
        Self { stream, drawn: Vec::new(), _quiet: NoEcho::begin() }
    }

    /// Where it is drawn.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Takes away what stands there, writes `above` for good, and draws what is under way below it.
    pub fn draw(&mut self, console: &mut Console, lines: &[NodeProgress], above: &str) -> io::Result<()> {
        let (width, height) = console.size(self.stream);
        let page = console.page(self.stream);
        let frame = frame(lines, Instant::now(), width, height.saturating_sub(SPARE), page);
        let mut out = self.away(width);
        out += above;
        for line in &frame {
            out += line;
            out.push('\n');
        }
        self.drawn = frame.iter().map(|line| columns(line)).collect();
        console.write(self.stream, &out)
    }

    /// Takes the block away for good.
    pub fn clear(&mut self, console: &mut Console) -> io::Result<()> {
        let out = self.away(console.size(self.stream).0);
        self.drawn.clear();
        console.write(self.stream, &out)
    }

    /// Up to the first line of the block, and everything from there on cleared.
    fn away(&self, width: usize) -> String {
        match rows(&self.drawn, width) {
            0 => String::new(),
            rows => format!("\x1b[{rows}A\r\x1b[J"),
        }
    }
}

/// How many rows of the terminal lines of so many columns take: a window that was made narrower since they were written has wrapped them.
fn rows(drawn: &[usize], width: usize) -> usize {
    drawn.iter().map(|columns| columns.div_ceil(width.max(1)).max(1)).sum()
}

/// The columns of a line with colours.
fn columns(line: &str) -> usize {
    let mut count = 0;
    let mut parts = line.split('\x1b');
    count += parts.next().map_or(0, |plain| plain.chars().count());
    // A colour ends with its `m`.
    count
        + parts.map(|part| part.split_once('m').map_or(0, |(_, plain)| plain.chars().count())).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_was_narrowed_has_wrapped_what_stood_there() {
        assert_eq!(rows(&[36, 80, 0, 59], 80), 4);
        assert_eq!(rows(&[36, 80, 0, 59], 40), 1 + 2 + 1 + 2);
        assert_eq!(rows(&[], 40), 0);
        assert_eq!(columns("r1n01  \x1b[33mproving  \x1b[0mbmc"), 19);
    }
}
