//! Hooks of a daemon under test: it kills, stops or pauses itself at a named point.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_engine::Hooks;
use rustix::process::{Signal, getpid, kill_process};

/// A point, the how-many-eth time that it is reached: `saved intent`, `sending off#2`, and `*#17` for the 17th point
/// of any name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct When {
    point: String,
    time: u32,
}

impl When {
    /// Reads it; without a number the first time.
    pub fn parse(text: &str) -> Self {
        let parsed = text.rsplit_once('#').and_then(|(point, time)| Some((point, time.parse().ok()?)));
        let (point, time) = parsed.unwrap_or((text, 1));
        Self { point: point.to_owned(), time }
    }

    fn is(&self, point: &str, time: u32, overall: u32) -> bool {
        (self.point == point && self.time == time) || (self.point == "*" && self.time == overall)
    }
}

/// What a daemon does to itself, from its environment:
///
/// - `PICKET_KILL_AT`: SIGKILL at this point
/// - `PICKET_STOP_AT`: SIGSTOP at this point
/// - `PICKET_PAUSE_AT`, with `PICKET_PAUSE_FILE`: makes the file at this point, and goes on when it is gone
/// - `PICKET_POINTS`: a file that gets each point, a line each
#[derive(Debug, Default)]
pub struct SelfHarm {
    kill: Option<When>,
    stop: Option<When>,
    pause: Option<(When, PathBuf)>,
    points: Option<PathBuf>,
    reached: Mutex<BTreeMap<String, u32>>,
}

impl SelfHarm {
    /// As this process's environment says.
    pub fn from_environment() -> Self {
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let when = |name| text(name).map(|text| When::parse(&text));
        Self {
            kill: when("PICKET_KILL_AT"),
            stop: when("PICKET_STOP_AT"),
            pause: when("PICKET_PAUSE_AT").zip(text("PICKET_PAUSE_FILE").map(PathBuf::from)),
            points: text("PICKET_POINTS").map(PathBuf::from),
            reached: Mutex::default(),
        }
    }

    /// Counts the point: the how-many-eth of its name, and of all.
    fn count(&self, point: &str) -> (u32, u32) {
        let mut reached = self.reached.lock();
        *reached.entry(point.to_owned()).or_default() += 1;
        (reached[point], reached.values().sum())
    }

    fn note(&self, point: &str) {
        let Some(path) = &self.points else { return };
        let file = OpenOptions::new().create(true).append(true).open(path);
        // A test that misses a point fails by itself.
        let _ = file.and_then(|mut file| file.write_all(format!("{point}\n").as_bytes()));
    }
}

impl SelfHarm {
    fn stop_at(&self, is: impl Fn(&When) -> bool) {
        if self.stop.as_ref().is_some_and(is) {
            let _ = kill_process(getpid(), Signal::STOP);
            // The signal may take a moment; until it has come nothing more is done here, asynchronously or otherwise.
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[async_trait]
impl Hooks for SelfHarm {
    async fn reached(&self, point: &str) {
        let (time, overall) = self.count(point);
        self.note(point);
        let is = |when: &When| when.is(point, time, overall);
        if self.kill.as_ref().is_some_and(is) {
            let _ = kill_process(getpid(), Signal::KILL);
            // The signal may take a moment; nothing more is done in it.
            std::future::pending::<()>().await;
        }
        self.stop_at(is);
        if let Some((_, file)) = self.pause.as_ref().filter(|(when, _)| is(when)) {
            let made = std::fs::write(file, point);
            while made.is_ok() && file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    /// Here nobody may wait: it kills or stops itself, and pauses nowhere.
    fn permitted(&self, point: &str) {
        let (time, overall) = self.count(point);
        self.note(point);
        let is = |when: &When| when.is(point, time, overall);
        if self.kill.as_ref().is_some_and(is) {
            let _ = kill_process(getpid(), Signal::KILL);
            std::thread::sleep(Duration::from_secs(60));
        }
        self.stop_at(is);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_met_the_time_that_was_named() {
        for (text, point, time, overall, met) in [
            ("saved intent", "saved intent", 1, 5, true),
            ("saved intent", "saved intent", 2, 6, false),
            ("sending off#2", "sending off", 2, 9, true),
            ("sending off#2", "sent off", 2, 9, false),
            ("*#17", "whatever", 1, 17, true),
            ("*#17", "whatever", 17, 18, false),
            ("odd#name", "odd#name", 1, 1, true),
        ] {
            assert_eq!(When::parse(text).is(point, time, overall), met, "{text} at {point} {time} {overall}");
        }
    }

    #[tokio::test]
    async fn it_pauses_until_the_file_is_gone_and_notes_its_points() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, points) = (dir.path().join("paused"), dir.path().join("points"));
        let pause = Some((When::parse("saved intent"), file.clone()));
        let harm = SelfHarm { pause, points: Some(points.clone()), ..SelfHarm::default() };
        harm.reached("saving intent").await;
        let go_on = async {
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            std::fs::remove_file(&file).expect("it is there");
        };
        tokio::join!(harm.reached("saved intent"), go_on);
        let noted = std::fs::read_to_string(points).expect("noted");
        assert_eq!(noted, "saving intent\nsaved intent\n");
    }
}
