//! How a test ended.

use std::time::Duration;

use serde_json::Value;

/// At most so many characters of why a test failed stand beside its name.
const WHY: usize = 600;

/// One test that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Package and program: `picket-tests::kubernetes`, `picket-core::picket_core`.
    pub program: String,
    /// `cluster::seed::its_kubelet_is_killed_and_its_pod_writes_on`.
    pub test: String,
    pub passed: bool,
    /// From its start to its end.
    pub wall: Duration,
    /// The output of a test that failed.
    pub printed: String,
}

impl Outcome {
    /// Reads a line of nextest's JSON; `None`: it tells of something else.
    pub fn read(line: &str) -> Option<Self> {
        let told: Value = serde_json::from_str(line).ok()?;
        let passed = match told["event"].as_str()? {
            "ok" => true,
            "failed" => false,
            _ => return None,
        };
        let (program, test) = told["name"].as_str()?.split_once('$')?;
        let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
        Some(Self {
            program: program.to_owned(),
            test: test.to_owned(),
            passed,
            wall: Duration::from_secs_f64(told["exec_time"].as_f64().unwrap_or_default()),
            printed: [text("stdout"), text("reason")].concat(),
        })
    }

    /// Why it failed, as one line: from where it panicked on, without the backtrace, or all that it printed.
    pub fn why(&self) -> String {
        let said = self.printed.split("\nstack backtrace:\n").next().unwrap_or_default();
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let from = lines.iter().position(|line| line.contains(" panicked at ")).map_or(0, |at| at + 1);
        let from = if from < lines.len() { from } else { 0 };
        lines[from..].join(" | ").chars().take(WHY).collect()
    }

    /// The lines by which the same throws of dice come again.
    pub fn seeds(&self) -> Vec<&str> {
        let tells = |line: &&str| line.contains("SEED=") || line.contains("seed ") || line.starts_with("cc ");
        self.printed.lines().map(str::trim).filter(tells).take(3).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = r#"{"type":"test","event":"failed","name":"tiny::it$m::e","exec_time":0.5,
        "stdout":"m: PICKET_SEED=5\n\nthread 'm::e' panicked at src/lib.rs:1:79:\nleft: 1\n right: 2\nstack backtrace:\n   0: x\n"}"#;

    #[test]
    fn the_end_of_a_test_is_read_and_nothing_else() {
        let failed = Outcome::read(&FAILED.replace('\n', "")).expect("an end");
        assert_eq!((failed.program.as_str(), failed.test.as_str()), ("tiny::it", "m::e"));
        assert_eq!((failed.passed, failed.wall), (false, Duration::from_millis(500)));
        let passed = r#"{"type":"test","event":"ok","name":"a::a$t","exec_time":0.1}"#;
        assert!(Outcome::read(passed).is_some_and(|told| told.passed));
        for other in [
            r#"{"type":"test","event":"started","name":"a::a$t"}"#,
            r#"{"type":"suite","event":"ok","passed":1}"#,
            "   Compiling",
        ] {
            assert_eq!(Outcome::read(other), None, "{other}");
        }
    }

    #[test]
    fn why_it_failed_is_told_in_one_line_and_its_seed() {
        let failed = Outcome::read(&FAILED.replace('\n', "")).expect("an end");
        assert_eq!(failed.why(), "left: 1 | right: 2");
        assert_eq!(failed.seeds(), ["m: PICKET_SEED=5"]);
        let late = r#"{"type":"test","event":"failed","name":"a::a$t","exec_time":2,"reason":"time limit exceeded"}"#;
        assert_eq!(Outcome::read(late).expect("an end").why(), "time limit exceeded");
    }
}
