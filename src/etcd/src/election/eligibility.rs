//! Whether a gateway may stand: by its settings, and by its version.

use crate::connection::Version;
use crate::election::Candidate;
use crate::observer::Observation;

/// Why `candidate`, whose settings have this digest (empty: nobody said which), may not stand; `None`: it may.
pub(super) fn refusal(candidate: &Candidate, digest: &str, seen: &Observation) -> Option<String> {
    if let Some(least) = &seen.least_version {
        let own = Version::parse(&candidate.me.version);
        match Version::parse(least) {
            Some(least) if own.is_none_or(|own| own < least) => {
                return Some(format!(
                    "it is version {}, and this fleet is led by version {least} or a later one: upgrade it",
                    candidate.me.version
                ));
            }
            Some(_) => {}
            None => return Some(format!("the least version that may lead is {least:?}, which is none")),
        }
    }
    let stored = seen.digest.as_deref()?;
    (!is_same(stored, digest) && !candidate.take_over_settings).then(|| {
        format!(
            "its nodes, devices, rules or roles ({}) are not those by which the fleet was led last ({}): make the settings the same \
             and reload it; or, where nobody leads and these are the right ones: picketd accept-settings, once, on its machine",
            short(digest),
            short(stored)
        )
    })
}

/// Whether a fleet that was led by these settings may be led by those. What leaders before roles counted stored says nothing of roles (`+`).
fn is_same(stored: &str, own: &str) -> bool {
    stored == own || own.split_once('+').is_some_and(|(before, _)| before == stored)
}

/// Enough of a digest of settings to tell two apart.
pub fn short(digest: &str) -> String {
    let short = |text: &str, most: usize| text.chars().take(most).collect::<String>();
    match digest.split_once('+') {
        Some((nodes, roles)) => format!("{}+{}", short(nodes, 12), short(roles, 6)),
        None => short(digest, 12),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use picket_core::election::Member;
    use picket_core::time::WallTime;

    use super::*;

    fn candidate(version: &str) -> Candidate {
        Candidate {
            me: Member { gateway: "g1".to_owned(), version: version.to_owned(), ..Member::default() },
            least_version: None,
            take_over_settings: false,
            lease: Duration::from_secs(5),
        }
    }

    fn observation(digest: Option<&str>, least: Option<&str>) -> Observation {
        let mut observation = Observation::not_yet(WallTime::from_millis(0));
        observation.digest = digest.map(str::to_owned);
        observation.least_version = least.map(str::to_owned);
        observation
    }

    #[test]
    fn who_has_other_settings_stands_only_when_told_to() {
        let mut one = candidate("0.4.0");
        assert_eq!(refusal(&one, "a", &observation(None, None)), None, "nobody ever led");
        assert_eq!(refusal(&one, "a", &observation(Some("a"), None)), None);
        assert_eq!(refusal(&one, "a+r", &observation(Some("a"), None)), None, "led before roles counted");
        assert!(
            refusal(&one, "a+r", &observation(Some("a+s"), None)).is_some_and(|why| why.contains("roles"))
        );
        assert!(refusal(&one, "a", &observation(Some("a+s"), None)).is_some());
        let why = refusal(&one, "a", &observation(Some("b"), None)).expect("other settings");
        assert!(why.contains("picketd accept-settings"), "{why}");
        one.take_over_settings = true;
        assert_eq!(refusal(&one, "a", &observation(Some("b"), None)), None);
    }

    #[test]
    fn an_older_version_never_stands() {
        let mut one = candidate("0.4.0");
        one.take_over_settings = true;
        for (least, stands) in
            [("0.3.9", true), ("0.4.0", true), ("0.4.1", false), ("0.10.0", false), ("?", false)]
        {
            assert_eq!(refusal(&one, "a", &observation(None, Some(least))).is_none(), stands, "{least}");
        }
        assert!(refusal(&candidate("dev"), "a", &observation(None, Some("0.1.0"))).is_some());
    }
}
