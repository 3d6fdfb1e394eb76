//! How nodes fare while they are followed: live on a terminal, plain lines in a pipe, nothing beside a document.

mod frame;
mod live;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::console::{Console, Stream};
use crate::duration;
use crate::global::Format;
use crate::motion::NodeProgress;
use crate::style::clean;
use crate::view::{ending, report, update};
use live::LiveBlock;

/// One of the three ways.
#[derive(Debug)]
pub enum Progress {
    /// The document at the end says it all.
    Silent,
    /// A line for everything that happens, nothing twice.
    Plain {
        /// What was told last of each node.
        said: BTreeMap<usize, LastUpdate>,
    },
    /// A line a node, rewritten in place.
    Live(LiveBlock),
}

/// What was told last of a node.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LastUpdate {
    what: String,
    wait: String,
}

impl Progress {
    /// The way that fits the streams: people see it live where a terminal is; a document has standard output to itself.
    pub fn of(console: &Console) -> Self {
        match console.format {
            Format::Table if console.is_terminal(Stream::Out) => Progress::Live(LiveBlock::new(Stream::Out)),
            Format::Table => Progress::Plain { said: BTreeMap::new() },
            Format::Json | Format::Yaml
                if console.is_terminal(Stream::Err) && !console.is_terminal(Stream::Out) =>
            {
                Progress::Live(LiveBlock::new(Stream::Err))
            }
            Format::Json | Format::Yaml => Progress::Silent,
        }
    }

    /// Whether it is to be drawn again as time passes.
    pub fn is_live(&self) -> bool {
        matches!(self, Progress::Live(_))
    }

    /// Draws it again.
    pub fn draw(&mut self, console: &mut Console, lines: &[NodeProgress]) -> io::Result<()> {
        match self {
            Progress::Live(live) => live.draw(console, lines, ""),
            Progress::Silent | Progress::Plain { .. } => Ok(()),
        }
    }

    /// A message came.
    pub fn update(&mut self, console: &mut Console, lines: &[NodeProgress], index: usize) -> io::Result<()> {
        match self {
            Progress::Silent => Ok(()),
            Progress::Live(live) => live.draw(console, lines, ""),
            Progress::Plain { said } => {
                let Some((message, _)) = &lines[index].latest else { return Ok(()) };
                let now = LastUpdate { what: update::what(message), wait: update::wait(message) };
                let last = said.entry(index).or_default();
                // The outcome is told with its evidence when the stream ends.
                if message.outcome.is_some() || *last == now {
                    return Ok(());
                }
                let (news, waits) = (last.what != now.what, last.wait != now.wait);
                let tells = news || waits && !now.wait.is_empty();
                *last = now;
                if !tells {
                    return Ok(());
                }
                console.write(Stream::Out, &format!("{}\n", update::line(message, waits)))
            }
        }
    }

    /// The connection broke, and is tried again.
    pub fn broken(
        &mut self,
        console: &mut Console,
        lines: &[NodeProgress],
        index: usize,
        again_in: Duration,
    ) -> io::Result<()> {
        match self {
            Progress::Silent => Ok(()),
            Progress::Live(live) => live.draw(console, lines, ""),
            Progress::Plain { .. } => {
                let (node, why) = (&lines[index].node, lines[index].broken.as_deref().unwrap_or_default());
                let again = duration::set(again_in);
                let text = format!("{node} connection lost ({why}); trying again in {again}");
                console.write(Stream::Out, &format!("{}\n", clean(&text)))
            }
        }
    }

    /// A node has its end. Those that end with a proof are told all together, in [`Progress::finish`]: until then one of many has a line.
    pub fn end(&mut self, console: &mut Console, lines: &[NodeProgress], index: usize) -> io::Result<()> {
        let Some(followed) = &lines[index].followed else { return Ok(()) };
        let proves = followed.motion.proves();
        match self {
            Progress::Silent => Ok(()),
            Progress::Plain { .. } if proves && lines.len() == 1 => Ok(()),
            Progress::Plain { .. } => {
                let page = console.page(Stream::Out);
                let text = if proves { report::line(followed, page) } else { report::render(followed, page) };
                console.write(Stream::Out, &text)
            }
            Progress::Live(live) => {
                let page = console.page(live.stream());
                let text = if proves { String::new() } else { report::render(followed, page) };
                live.draw(console, lines, &text)
            }
        }
    }

    /// All have their end.
    pub fn finish(&mut self, console: &mut Console, lines: &[NodeProgress]) -> io::Result<()> {
        let stream = match self {
            Progress::Silent => return Ok(()),
            Progress::Plain { .. } => Stream::Out,
            Progress::Live(live) => live.stream(),
        };
        if let Progress::Live(live) = self {
            live.clear(console)?;
        }
        let followed: Vec<_> = lines.iter().filter_map(|line| line.followed.as_ref()).collect();
        let proving: Vec<_> = followed.iter().copied().filter(|one| one.motion.proves()).collect();
        let mut text = String::new();
        if !proving.is_empty() {
            text += &ending::render(&proving, console.page(stream));
        }
        if followed.len() > 1 {
            text += if proving.is_empty() { "" } else { "\n" };
            text += &report::summary(&followed);
        }
        console.write(stream, &text)
    }
}
