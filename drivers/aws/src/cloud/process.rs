//! A program that prints credentials (`credential_process`), as AWS lets machines outside of AWS log in
//! (IAM Roles Anywhere).
//!
//! # Invariants
//!
//! - The program is run without a shell. Shown by `a_command_has_the_words_that_awss_own_tools_see`.
//! - The keeper ends the program in time, with all that it started.
//! - What it prints on its standard output, and what its arguments are, is shown nowhere (S18). Shown by
//!   `a_program_that_prints_none_says_why_and_no_secret`.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, future};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use picket_reach::program::Program;
use picket_reach::{excerpt, process};
use serde_json::Value;
use tokio::time::Instant;

use super::credentials::WITHIN;

/// How long it may take: less than who waits for it.
const LONGEST: Duration = Duration::from_secs(WITHIN.as_secs() - 10);

/// A program with its arguments.
#[derive(Clone)]
pub(super) struct Process(Program);

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Process({})", self.0.shown())
    }
}

impl Process {
    /// By a command as AWS's files have it; its environment has `PATH` and these variables.
    pub(super) fn new(command: &str, env: &[String]) -> Result<Self, String> {
        let words = split(command).ok_or("a quote of it does not end")?;
        let [program, args @ ..] = words.as_slice() else { return Err("it is empty".to_owned()) };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Ok(Self(Program::at(program.into(), env)?.with(&args)))
    }

    async fn run(&self) -> Result<Credentials, String> {
        let ran = process::run(self.0.command(), b"", Instant::now() + LONGEST, || Ok(())).await;
        let ran = ran.map_err(|error| error.to_string())?;
        let status = ran.status.ok_or_else(|| format!("was killed after {LONGEST:?}"))?;
        if !status.success() {
            return Err(format!("ended with {status}: {}", excerpt(&ran.stderr.bytes)));
        }
        if ran.stdout.cut {
            return Err("printed more than credentials".to_owned());
        }
        read(&ran.stdout.bytes, SystemTime::now()).map_err(str::to_owned)
    }
}

impl ProvideCredentials for Process {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async {
            let ran = self.run().await;
            let wrong = |why| {
                CredentialsError::provider_error(format!("credential_process: {} {why}", self.0.shown()))
            };
            ran.map_err(wrong)
        })
    }
}

/// Reads the credentials that the program printed (AWS's SDKs and tools reference guide, "Process credential provider").
fn read(printed: &[u8], now: SystemTime) -> Result<Credentials, &'static str> {
    let told: Value = serde_json::from_slice(printed).map_err(|_| "printed no JSON")?;
    if told["Version"].as_u64() != Some(1) {
        return Err("printed credentials whose Version is not 1");
    }
    let text = |key: &str| told[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let (Some(id), Some(secret)) = (text("AccessKeyId"), text("SecretAccessKey")) else {
        return Err("printed no AccessKeyId with a SecretAccessKey");
    };
    let end = match &told["Expiration"] {
        Value::Null => None,
        Value::String(end) => {
            let end = DateTime::from_str(end, Format::DateTimeWithOffset).ok();
            Some(
                end.and_then(|end| SystemTime::try_from(end).ok())
                    .ok_or("printed an Expiration that is no time")?,
            )
        }
        _ => return Err("printed an Expiration that is no time"),
    };
    if end.is_some_and(|end| end <= now) {
        return Err("printed credentials that have ended, by this machine's clock");
    }
    Ok(Credentials::new(id, secret, text("SessionToken"), end, "credential_process"))
}

/// Its words, as AWS's own tools have them: by blanks, but within quotes; nothing else has a meaning, as no shell sees it. `None`: a quote
/// does not end.
fn split(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (end, Some(begun)) if end == begun => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().push(chars.next()?),
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_words_that_awss_own_tools_see() {
        for (command, words) in [
            ("/bin/a b  c", Some(&["/bin/a", "b", "c"][..])),
            ("\"/opt/a b/c\" --x 'd \"e\"' f\\ g", Some(&["/opt/a b/c", "--x", "d \"e\"", "f g"][..])),
            ("/bin/a \"\" $HOME;ls 'a\\b' \"a\\\"b\"", Some(&["/bin/a", "", "$HOME;ls", "a\\b", "a\"b"][..])),
            ("  ", Some(&[][..])),
            ("/bin/a \"b", None),
        ] {
            let told = split(command);
            assert_eq!(
                told.as_ref().map(|told| told.iter().map(String::as_str).collect::<Vec<_>>()),
                words.map(<[_]>::to_vec)
            );
        }
    }

    #[test]
    fn what_is_printed_counts_until_its_end_and_is_never_repeated() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let with = |more: &str| {
            format!("{{\"Version\": 1, \"AccessKeyId\": \"A\", \"SecretAccessKey\": \"hunter2\"{more}}}")
        };
        for (printed, ends) in [
            (with(""), None),
            (with(", \"Expiration\": null"), None),
            (with(", \"Expiration\": \"2027-01-15T08:10:00Z\", \"SessionToken\": \"hunter3\""), Some(600)),
            (with(", \"Expiration\": \"2027-01-15T10:10:00+02:00\""), Some(600)),
        ] {
            let read = read(printed.as_bytes(), now).expect("credentials");
            let left = read.expiry().map(|end| end.duration_since(now).expect("later").as_secs());
            assert_eq!((left, read.secret_access_key()), (ends, "hunter2"), "{printed}");
        }
        for (printed, word) in [
            ("hunter2".to_owned(), "no JSON"),
            (with("").replace("1,", "2,"), "Version"),
            (with("").replace("\"A\"", "\"\""), "AccessKeyId"),
            (with(", \"Expiration\": \"tomorrow\""), "no time"),
            (with(", \"Expiration\": 5"), "no time"),
            (with(", \"Expiration\": \"2027-01-15T07:59:59Z\""), "have ended"),
        ] {
            let why = read(printed.as_bytes(), now).expect_err(word);
            assert!(why.contains(word), "{printed}: {why}");
        }
    }
}
