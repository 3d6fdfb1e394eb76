//! Which of a machine's volumes are let go: by id, by name, by tag.

use picket_driver::Volume;
use picket_reach::Settings;
use serde_json::{Map, Value};

/// `include` and `exclude`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    include: Option<Matches>,
    exclude: Option<Matches>,
}

/// Volumes that one of these names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Matches {
    ids: Vec<String>,
    /// With `*` for any text.
    names: Vec<String>,
    /// `key`, or `key=value`.
    tags: Vec<String>,
}

impl Matches {
    fn read(settings: &mut Settings<'_>, key: &'static str) -> Option<Self> {
        let table = settings.table(key)?;
        let (read, wrong) = Self::of(table);
        wrong.into_iter().for_each(|message| settings.fault(key, message));
        read
    }

    fn of(table: &Map<String, Value>) -> (Option<Self>, Vec<String>) {
        let mut inner = Settings::new(table);
        let all = Self { ids: inner.texts("id"), names: inner.texts("name"), tags: inner.texts("tag") };
        let texts = || [&all.ids, &all.names, &all.tags].into_iter().flatten();
        if texts().next().is_none() {
            inner.fault("", "names nothing: give id, name or tag, each a list of texts");
        }
        if texts().any(String::is_empty) {
            inner.fault("", "an empty text names nothing");
        }
        if all.ids.iter().any(|id| id.contains('*')) {
            inner.fault("id", "an id is given in full: patterns are for names");
        }
        match inner.finish(Some(all)) {
            Ok(all) => (Some(all), Vec::new()),
            Err(faults) => {
                let words = |fault: picket_reach::SettingFault| match fault.key.is_empty() {
                    true => fault.message,
                    false => format!("{}: {}", fault.key, fault.message),
                };
                (None, faults.into_iter().map(words).collect())
            }
        }
    }

    fn has(&self, volume: &Volume) -> bool {
        let tagged = |tag: &String| match tag.split_once('=') {
            Some((key, value)) => volume.tags.get(key).is_some_and(|found| found == value),
            None => volume.tags.contains_key(tag),
        };
        self.ids.contains(&volume.at.id)
            || self.names.iter().any(|name| fits(name, &volume.name))
            || self.tags.iter().any(tagged)
    }

    fn words(&self) -> String {
        let of = |what: &str, all: &[String]| (!all.is_empty()).then(|| format!("{what} {}", all.join(", ")));
        let all = [of("id", &self.ids), of("name", &self.names), of("tag", &self.tags)];
        all.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

impl Choice {
    pub(crate) fn read(settings: &mut Settings<'_>) -> Self {
        Self { include: Matches::read(settings, "include"), exclude: Matches::read(settings, "exclude") }
    }

    /// Why it stays, where it does.
    pub(crate) fn stays(&self, volume: &Volume) -> Option<String> {
        if let Some(why) = &volume.stays {
            return Some(why.clone());
        }
        if self.exclude.as_ref().is_some_and(|exclude| exclude.has(volume)) {
            return Some("the settings exclude it".to_owned());
        }
        let left_out = self.include.as_ref().is_some_and(|include| !include.has(volume));
        left_out.then(|| "the settings do not include it".to_owned())
    }

    pub(crate) fn words(&self) -> String {
        let include = self.include.as_ref().map(|include| format!("with {}", include.words()));
        let exclude = self.exclude.as_ref().map(|exclude| format!("without {}", exclude.words()));
        let words: Vec<String> = include.into_iter().chain(exclude).collect();
        if words.is_empty() { "all that may go".to_owned() } else { words.join(", ") }
    }
}

/// Whether a text is as the pattern has it, in which `*` stands for any text, also none.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use picket_driver::VolumeAt;
    use serde_json::json;

    use super::*;

    fn volume(id: &str, name: &str, tags: &[(&str, &str)]) -> Volume {
        Volume {
            at: VolumeAt { id: id.to_owned(), device: String::new() },
            name: name.to_owned(),
            tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            stays: None,
        }
    }

    fn choice(table: Value) -> Result<Choice, Vec<picket_reach::SettingFault>> {
        let table = table.as_object().expect("a table").clone();
        let mut settings = Settings::new(&table);
        let made = Choice::read(&mut settings);
        settings.finish(Some(made))
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, wanted) in [
            ("data", "data", true),
            ("data", "data1", false),
            ("data-*", "data-1", true),
            ("data-*", "data-", true),
            ("data-*", "old-data-1", false),
            ("*-1", "data-1", true),
            ("*a*b*", "xaxbx", true),
            ("*a*b*", "xbxax", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*", "", true),
            ("", "", true),
        ] {
            assert_eq!(fits(pattern, text), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_included_goes_and_what_is_excluded_stays_also_where_it_is_included() {
        let choice = choice(json!({
            "include": {"name": ["data-*"], "tag": ["picket=go", "shared"], "id": ["v9"]},
            "exclude": {"tag": ["picket=stay"], "id": ["v8"]},
        }))
        .expect("good");
        for (volume, goes) in [
            (volume("v1", "data-1", &[]), true),
            (volume("v2", "logs", &[]), false),
            (volume("v3", "logs", &[("picket", "go")]), true),
            (volume("v4", "logs", &[("picket", "no")]), false),
            (volume("v5", "logs", &[("shared", "whatever")]), true),
            (volume("v9", "", &[]), true),
            (volume("v8", "data-8", &[]), false),
            (volume("v7", "data-7", &[("picket", "stay")]), false),
        ] {
            assert_eq!(choice.stays(&volume).is_none(), goes, "{volume:?}");
        }
        assert_eq!(
            choice.words(),
            "with id v9; name data-*; tag picket=go, shared, without id v8; tag picket=stay"
        );
    }

    #[test]
    fn what_stays_in_any_case_stays_also_where_it_is_included() {
        let choice = choice(json!({"include": {"id": ["v1"]}})).expect("good");
        let root = Volume { stays: Some("it is the root volume".to_owned()), ..volume("v1", "", &[]) };
        assert_eq!(choice.stays(&root).as_deref(), Some("it is the root volume"));
        let all = Choice::default();
        assert_eq!((all.stays(&volume("v1", "", &[])), all.words().as_str()), (None, "all that may go"));
    }

    #[test]
    fn faults_say_what_would_be_right() {
        let faults =
            choice(json!({"include": {}, "exclude": {"id": ["vol-*"], "colour": ["red"], "name": "data"}}))
                .expect_err("all of it is wrong");
        let words: Vec<String> =
            faults.iter().map(|fault| format!("{} {}", fault.key, fault.message)).collect();
        assert!(words[0].starts_with("include names nothing: give id, name or tag"), "{words:?}");
        for wanted in [
            "expected a list of texts",
            "id: an id is given in full",
            "colour: unknown key; known are id, name, tag",
        ] {
            assert!(
                words.iter().any(|word| word.starts_with("exclude") && word.contains(wanted)),
                "{wanted}: {words:?}"
            );
        }
        assert!(
            choice(json!({"include": ["data-*"]})).expect_err("a list")[0]
                .message
                .contains("expected a table")
        );
    }
}
