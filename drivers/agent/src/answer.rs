//! What an agent's end means for power.
//!
//! Agents of ClusterLabs end with 0 or, where something went wrong, with 1, whatever it was (`fail` and `fail_usage` in fencing.py
//! 4.12.1); a status that is off ends with 2. An interpreter that does not find its program ends with 2 as well, and so do
//! shells that cannot read theirs. So no code says anything without the agent's words.

use picket_core::power::Power;
use picket_driver::{DriverError, Effect, ErrorKind, Secret};
use picket_reach::process::Ran;

/// How much of an agent's words is shown.
const SHOWN: usize = 200;

/// The power that `action=status` told, with its words; an error where the agent could not tell.
pub fn power(ran: &Ran, secrets: &[Secret]) -> Result<(Power, String), DriverError> {
    let code = ran.status.and_then(|status| status.code());
    let out = String::from_utf8_lossy(&ran.stdout.bytes);
    let mut told = out.lines().filter_map(|line| line.trim().strip_prefix("Status:")).map(str::trim);
    match (code, told.next(), told.next()) {
        // Cut off, it may have said more.
        (Some(_), Some(word), _) if ran.stdout.cut => {
            Ok((Power::Unknown, format!("{} and more than is read", shown(word, secrets))))
        }
        (Some(0), Some(word), None) if word.eq_ignore_ascii_case("on") => Ok((Power::On, "on".to_owned())),
        (Some(2), Some(word), None) if word.eq_ignore_ascii_case("off") => Ok((Power::Off, "off".to_owned())),
        (Some(code @ (0 | 2)), Some(word), more) => {
            let said = more.map_or_else(|| word.to_owned(), |more| format!("{word}, then {more}"));
            Ok((Power::Unknown, format!("status {} with exit code {code}", shown(&said, secrets))))
        }
        _ => Err(failure(ran, secrets, Effect::DidNotHappen)),
    }
}

/// Whether a command was done, and whether the agent said that it had nothing to do; an error where it failed.
pub fn done(ran: &Ran, secrets: &[Secret]) -> Result<bool, DriverError> {
    if ran.status.and_then(|status| status.code()) != Some(0) {
        // Also where it could not log in: with one word for everything nobody can tell which copy of what got through.
        return Err(failure(ran, secrets, Effect::Unknown));
    }
    let out = String::from_utf8_lossy(&ran.stdout.bytes);
    Ok(out.lines().any(|line| line.trim().starts_with("Success: Already")))
}

fn failure(ran: &Ran, secrets: &[Secret], effect: Effect) -> DriverError {
    let Some(status) = ran.status else {
        let detail = "the agent did not end in time and was killed".to_owned();
        return DriverError::new(ErrorKind::TimedOut, effect, detail);
    };
    let err = String::from_utf8_lossy(&ran.stderr.bytes);
    // Messages of fencing.py 4.12.1; what it says for a device that is silent and for one that answers nonsense is the same.
    let kinds = [
        ("Timed out waiting to power", ErrorKind::TimedOut),
        ("Connection timed out", ErrorKind::TimedOut),
        ("Unable to connect/login", ErrorKind::Unreachable),
        ("Connection lost", ErrorKind::Unreachable),
        ("Unable to obtain correct plug status", ErrorKind::Unreachable),
        ("You have to set login password", ErrorKind::Settings),
        ("does not have the correct privileges", ErrorKind::Forbidden),
    ];
    let kind =
        kinds.iter().find(|(words, _)| err.contains(words)).map_or(ErrorKind::Refused, |(_, kind)| *kind);
    let words = err
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.ends_with("Please use '-h' for usage"));
    let words = words.map(|words| format!(": {}", shown(words, secrets))).unwrap_or_default();
    DriverError::new(kind, effect, format!("the agent ended with {status}{words}"))
}

/// An agent's words without secrets, fit for one line. An agent may quote a secret before it tells it: each longer piece of one
/// that no quoting changes is left out too.
fn shown(words: &str, secrets: &[Secret]) -> String {
    let mut text: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    for secret in secrets.iter().map(|secret| String::from_utf8_lossy(secret.expose())) {
        let pieces = secret.split(|c: char| !c.is_alphanumeric()).filter(|piece| piece.chars().count() >= 3);
        for piece in std::iter::once(&*secret).chain(pieces) {
            text = text.replace(piece, "[secret]");
        }
    }
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use picket_reach::process::Kept;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn ran(code: Option<i32>, out: &str, err: &str) -> Ran {
        let kept = |text: &str| Kept { bytes: text.as_bytes().to_vec(), cut: false };
        Ran { status: code.map(|code| ExitStatus::from_raw(code << 8)), stdout: kept(out), stderr: kept(err) }
    }

    #[test]
    fn only_a_code_and_a_word_that_agree_are_on_or_off() {
        for (code, out, power) in [
            (0, "Status: ON\n", Power::On),
            (2, "Status: OFF\n", Power::Off),
            (2, "outlet7\nStatus: OFF\n", Power::Off),
            (0, "Status: OFF\n", Power::Unknown),
            (2, "Status: ON\n", Power::Unknown),
            (2, "Status: OFF\nStatus: ON\n", Power::Unknown),
            (2, "Status: OFFLINE\n", Power::Unknown),
            (2, "Status:\n", Power::Unknown),
            (0, "Status: STANDBY\n", Power::Unknown),
        ] {
            let (told, words) = super::power(&ran(Some(code), out, ""), &[]).expect("it said something");
            assert_eq!(told, power, "{code} {out:?}: {words}");
        }
    }

    #[test]
    fn a_code_without_a_word_is_no_answer() {
        for (code, out) in [
            (Some(2), ""),
            (Some(0), ""),
            (Some(1), "Status: OFF\n"),
            (Some(127), ""),
            (None, "Status: OFF\n"),
        ] {
            let error = super::power(&ran(code, out, ""), &[]).expect_err("it said nothing");
            assert_eq!(error.effect, Effect::DidNotHappen, "{code:?} {out:?}");
        }
        let signal = Ran { status: Some(ExitStatus::from_raw(9)), ..ran(Some(0), "Status: OFF\n", "") };
        assert!(super::power(&signal, &[]).is_err());
    }

    #[test]
    fn more_words_than_are_read_are_no_answer() {
        let mut cut = ran(Some(2), "Status: OFF\n", "");
        cut.stdout.cut = true;
        assert_eq!(super::power(&cut, &[]).expect("an answer").0, Power::Unknown);
    }

    #[test]
    fn a_command_is_done_only_with_code_0() {
        assert!(!done(&ran(Some(0), "Success: Powered OFF\n", ""), &[]).expect("done"));
        assert!(done(&ran(Some(0), "Success: Already OFF\n", ""), &[]).expect("done"));
        for code in [Some(1), Some(2), Some(255), None] {
            let error = done(&ran(code, "Success: Powered OFF\n", ""), &[]).expect_err("not done");
            assert_eq!(error.effect, Effect::Unknown, "{code:?}");
        }
    }

    #[test]
    fn what_the_library_says_has_a_kind() {
        for (err, kind) in [
            ("2026 ERROR: Unable to connect/login to fencing device\n\n", ErrorKind::Unreachable),
            ("ERROR: Failed: Timed out waiting to power OFF\n", ErrorKind::TimedOut),
            ("ERROR: something else\nERROR: Please use '-h' for usage\n", ErrorKind::Refused),
        ] {
            let error = done(&ran(Some(1), "", err), &[]).expect_err("it failed");
            assert_eq!(error.kind, kind, "{error}");
            assert!(!error.detail.contains("usage"), "{error}");
        }
    }

    #[test]
    fn no_secret_is_repeated_however_it_is_quoted() {
        let secrets = [Secret::new("it's-secret&deep".as_bytes().to_vec())];
        let err = "Cannot run command snmpset -c 'it'\"'\"'s-secret&deep'; it's-secret&deep";
        let error = done(&ran(Some(1), "", err), &secrets).expect_err("it failed");
        assert!(!error.detail.contains("secret&") && !error.detail.contains("deep"), "{error}");
    }
}
