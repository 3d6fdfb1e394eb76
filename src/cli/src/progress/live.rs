//! Live progress: a line for each node under way, rewritten in place; those that ended scroll away above.

use std::io;

use tokio::time::Instant;

use crate::console::{Console, Stream};
use crate::duration;
use crate::follow::Line;
use crate::style::{Page, Tone, clean, clip};
use crate::view::{update, words};

/// Lines of the terminal that are left to others.
const SPARE: usize = 2;

/// The lines on the terminal.
#[derive(Debug)]
pub struct Live {
    stream: Stream,
    /// How many lines stand there now, to be rewritten.
    drawn: usize,
}

impl Live {
    /// Nothing drawn yet.
    pub fn new(stream: Stream) -> Self {
        Self { stream, drawn: 0 }
    }

    /// Where it is drawn.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Takes away what stands there, writes `above` for good, and draws what is under way below it.
    pub fn draw(&mut self, console: &mut Console, lines: &[Line], above: &str) -> io::Result<()> {
        let (width, height) = console.size(self.stream);
        let frame =
            frame(lines, Instant::now(), width, height.saturating_sub(SPARE), console.page(self.stream));
        let mut out = String::new();
        if self.drawn > 0 {
            // Up to the first of them, and everything from there on cleared.
            out += &format!("\x1b[{}A\r\x1b[J", self.drawn);
        }
        out += above;
        for line in &frame {
            out += line;
            out.push('\n');
        }
        self.drawn = frame.len();
        console.write(self.stream, &out)
    }
}

/// The lines of all nodes under way, no more than `height`, none wider than `width`.
fn frame(lines: &[Line], now: Instant, width: usize, height: usize, page: Page) -> Vec<String> {
    let open: Vec<&Line> = lines.iter().filter(|line| line.followed.is_none()).collect();
    let names = open.iter().map(|line| line.node.chars().count()).max().unwrap_or(0);
    let begun: Vec<&&Line> = open.iter().filter(|line| line.started.is_some()).collect();
    let mut shown: Vec<String> = begun
        .iter()
        .take(if open.len() > height { height.saturating_sub(1).max(1) } else { open.len() })
        .map(|line| one(line, now, names, width, page))
        .collect();
    if open.len() > shown.len() {
        shown.push(
            page.tone(Tone::Faint, &clip(&format!("... and {} more", open.len() - shown.len()), width)),
        );
    }
    shown
}

fn one(line: &Line, now: Instant, names: usize, width: usize, page: Page) -> String {
    let node = format!("{:<names$}", clean(&line.node));
    let since_asked = line.started.map(|started| now.saturating_duration_since(started)).unwrap_or_default();
    let (tone, phase, elapsed, text) = match &line.latest {
        None => (Tone::Faint, "asking".to_owned(), since_asked, String::new()),
        Some((message, arrived)) => {
            let since = now.saturating_duration_since(*arrived);
            let elapsed = message.elapsed.map_or(since_asked, |span| duration::of_wire(&span) + since);
            let mut text = clean(&message.text).into_owned();
            if let Some(wait) = &message.wait {
                let waits = update::live_wait(message, wait, since);
                text = if text.is_empty() { waits } else { format!("{text}; {waits}") };
            }
            if update::is_simulated(message) {
                text = format!("simulated; {text}");
            }
            (words::phase_tone(message.phase), words::spoken(words::phase(message.phase)), elapsed, text)
        }
    };
    let (tone, text) = match &line.broken {
        Some(why) => (Tone::Bad, format!("connection lost ({}), trying again", clean(why))),
        None => (tone, text),
    };
    let elapsed = format!("{:>11}", duration::words(elapsed));
    let rest = width.saturating_sub(names + 15 + elapsed.chars().count() + 6);
    let phase = page.tone(tone, &format!("{phase:<15}"));
    format!("{node}  {phase}  {elapsed}  {}", clip(&text, rest)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use picket_proto::v1::{FenceRequest, FenceUpdate, Phase, Wait};
    use prost_types::Timestamp;

    use super::*;
    use crate::follow::Motion;

    fn line(node: &str, begun: Option<Instant>) -> Line {
        Line {
            node: node.to_owned(),
            motion: Motion::Fence(FenceRequest::default()),
            started: begun,
            latest: None,
            readings: Default::default(),
            broken: None,
            followed: None,
        }
    }

    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp { seconds, nanos: 0 })
    }

    fn fencing(arrived: Instant) -> (FenceUpdate, Instant) {
        let update = FenceUpdate {
            time: at(1_000),
            phase: Phase::Fencing.into(),
            text: "off accepted by bmc".to_owned(),
            elapsed: Some(prost_types::Duration { seconds: 3, nanos: 0 }),
            wait: Some(Wait {
                what: "Off".to_owned(),
                whose: "bmc".to_owned(),
                until: at(1_020),
                ..Default::default()
            }),
            ..Default::default()
        };
        (update, arrived)
    }

    #[test]
    fn a_line_says_phase_time_and_what_it_waits_for() {
        let begun = Instant::now();
        let now = begun + Duration::from_secs(10);
        let mut lines = [line("r1n01", Some(begun)), line("r1n2", Some(begun)), line("r1n3", Some(begun))];
        lines[0].latest = Some(fencing(begun + Duration::from_millis(8_500)));
        lines[1].broken = Some("reset".to_owned());
        let plain = frame(&lines, now, 100, 24, Page::PLAIN);
        assert_eq!(
            plain,
            [
                "r1n01  fencing                4.5 s  off accepted by bmc; waits for Off (bmc), 18 s left",
                "r1n2   asking                10.0 s  connection lost (reset), trying again",
                "r1n3   asking                10.0 s",
            ]
        );
        let coloured = frame(&lines, now, 100, 24, Page { colours: true, width: None });
        assert!(coloured[0].contains("\x1b[33mfencing"), "{}", coloured[0]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_frame_higher() {
        let begun = Instant::now();
        let mut lines: Vec<Line> = (0..40).map(|n| line(&format!("n{n:02}"), Some(begun))).collect();
        lines.iter_mut().for_each(|line| line.latest = Some(fencing(begun)));
        lines[39].started = None;
        let frame = frame(&lines, begun, 60, 10, Page::PLAIN);
        assert_eq!(frame.len(), 10);
        assert_eq!(frame[9], "... and 31 more");
        assert!(frame.iter().all(|line| line.chars().count() <= 60), "{frame:#?}");
        assert!(frame[0].ends_with('…'));
    }
}
