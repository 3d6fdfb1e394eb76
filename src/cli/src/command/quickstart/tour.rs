//! The steps of a tour: a sentence, the command as one would type it, and what it truly says.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use super::demo_programs::DemoPrograms;
use crate::console::{Console, Stream};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::style::{Tone, wrap};

/// A tour is read on a terminal of this width, or a wider one.
const WIDTH: usize = 79;

/// Sentences, each with the command that it tells of.
const STEPS: [(&str, &[&str]); 5] = [
    (
        "Four simulated machines are on. Their devices are degraded, as nobody but each BMC itself says whose machine it controls.",
        &["nodes"],
    ),
    (
        "A fence holds the machine off, switches it off, and waits until it reads off twice. It falls two to three seconds after \
         its BMC said yes.",
        &["fence", "rack1-1", "--yes", "--reason", "a rehearsal"],
    ),
    (
        "Each fence is kept. With --fence and its id, history has every question and every answer.",
        &["history", "rack1-1"],
    ),
    (
        "Volumes would be with another node by now, so this one stays off until somebody brings it back.",
        &["status", "rack1-1"],
    ),
    (
        "An unfence puts back what the hold changed, and switches the machine on.",
        &["unfence", "rack1-1", "--yes", "--reason", "it works"],
    ),
];

/// Shows the steps.
#[derive(Debug)]
pub struct Guide<'a> {
    /// Where to.
    pub console: &'a mut Console,
    /// It waits for Enter between steps.
    pub asks: bool,
}

impl Guide<'_> {
    /// Text in lines of a terminal.
    pub fn say(&mut self, text: &str) -> Result<(), Fault> {
        let lines = text
            .lines()
            .flat_map(|line| if line.is_empty() { vec![String::new()] } else { wrap(line, WIDTH) });
        let text: String = lines.map(|line| line + "\n").collect();
        Ok(self.console.write(Stream::Out, &text)?)
    }

    /// What begins now.
    pub fn welcome(&mut self, directory: &Path) -> Result<(), Fault> {
        self.say(&format!(
            "Picket without hardware: simulated machines, their BMCs, and a gateway before them. No real machine is switched.\n\
             Settings, store, audit and logs are in {}.",
            directory.display()
        ))
    }

    /// All steps, in order. A step that was interrupted is the last one: Ctrl-C reaches it as well, and may reach it first.
    ///
    /// # Errors
    /// A command ended otherwise than with 0.
    pub async fn steps(&mut self, demo: &mut DemoPrograms) -> Result<Exit, Fault> {
        for (number, (sentence, words)) in (1..).zip(STEPS) {
            self.say(&format!("\n{number} of {}. {sentence}", STEPS.len()))?;
            self.wait("run it").await?;
            let ended = self.show(demo, words).await?;
            if ended.code() == Some(Exit::Interrupted.code().into()) || ended.signal().is_some() {
                return Ok(Exit::Interrupted);
            }
            if !ended.success() {
                return Err(Fault::Failed(format!("picket {} ended with {ended}", words.join(" "))));
            }
        }
        Ok(Exit::Done)
    }

    async fn show(&mut self, demo: &mut DemoPrograms, words: &[&str]) -> Result<ExitStatus, Fault> {
        let typed = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let typed = self.console.page(Stream::Out).tone(Tone::Faint, &format!("$ picket {typed}"));
        self.console.write(Stream::Out, &format!("\n{typed}\n"))?;
        demo.run(words).await
    }

    /// What else can be done while both programs run.
    pub async fn more(&mut self, demo: &DemoPrograms) -> Result<(), Fault> {
        self.say("\nThat was a fence. On a machine of your own it begins with: picket init")?;
        if !self.asks {
            return self.say("Without --yes both programs run on until Enter, for commands of your own.");
        }
        let fleet = demo.fleet_id().map(|id| id.to_string()).unwrap_or_default();
        let log = demo.directory().join("fleet.log");
        self.say("Both programs run until you press Enter. In another terminal:\n")?;
        let commands = [
            format!("export PICKET_ENDPOINT={}", demo.endpoint()),
            "picket help commands".to_owned(),
            "picket fence worst-1 --yes --reason \"a BMC that lies\"".to_owned(),
            format!("kill -USR1 {fleet}; sleep 1; tail -4 {}", log.display()),
        ];
        let commands: String = commands.iter().map(|command| format!("  {command}\n")).collect();
        self.console.write(Stream::Out, &commands)?;
        self.say(
            "\nThe last one prints which machines are truly on: worst-1 is, whatever its BMC says. docs/remains.md tells what helps.",
        )?;
        self.wait("end both").await
    }

    async fn wait(&mut self, then: &str) -> Result<(), Fault> {
        if !self.asks {
            return Ok(());
        }
        self.console.write(Stream::Out, &format!("[Enter: {then}. Ctrl-C: end all of it] "))?;
        // Its end says as much as a line.
        let read = tokio::task::spawn_blocking(|| io::stdin().read_line(&mut String::new()));
        read.await.map_err(io::Error::other)??;
        Ok(())
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain =
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.=/:,".contains(c));
    if is_plain { word.to_owned() } else { format!("\"{word}\"") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn each_step_is_a_command_that_there_is_and_asks_nothing() {
        for (sentence, words) in STEPS {
            let line = ["picket"].iter().chain(words).copied();
            let cli = Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{words:?}: {error}"));
            assert!(cli.global.yes || ["nodes", "history", "status"].contains(&words[0]), "{words:?}");
            assert!(sentence.ends_with('.'), "{sentence}");
        }
    }

    #[test]
    fn a_word_with_a_space_is_quoted() {
        assert_eq!(quoted("rack1-1"), "rack1-1");
        assert_eq!(quoted("a rehearsal"), "\"a rehearsal\"");
    }
}
