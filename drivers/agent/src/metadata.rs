//! What an agent says of itself (`-o metadata`): its parameters and actions.
//!
//! Read leniently, tag by tag: descriptions in it are often no well-formed XML, and nothing of them is needed.

use std::collections::BTreeMap;

/// What a parameter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Any text.
    Text,
    /// A whole number.
    Number,
    /// Yes or no.
    Flag,
    /// One of these.
    Choice(Vec<String>),
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// It must be given, unless it has a default.
    pub required: bool,
    /// An older name for the same.
    pub obsoletes: Option<String>,
    /// What it takes.
    pub content: Content,
    /// What it is if it is not given.
    pub default: Option<String>,
}

/// What an agent says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Parameters by name, with `_` where the agent has `-`.
    pub parameters: BTreeMap<String, Parameter>,
    /// Actions.
    pub actions: Vec<String>,
    /// Its version, which is told by itself and not here; empty: it tells none.
    pub version: String,
}

impl Metadata {
    /// Reads it; an error says what is missing.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut read = Self::default();
        let mut within: Option<String> = None;
        let mut begun = false;
        for tag in tags(text) {
            let get = |key: &str| {
                tag.attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| plain(value))
            };
            match tag.name {
                "resource-agent" => begun = true,
                "parameter" => {
                    let Some(name) = get("name") else { continue };
                    let name = same(&name);
                    let parameter = Parameter {
                        required: get("required").as_deref() == Some("1"),
                        obsoletes: get("obsoletes").map(|old| same(&old)),
                        content: Content::Text,
                        default: None,
                    };
                    read.parameters.insert(name.clone(), parameter);
                    within = Some(name);
                }
                "/parameter" => within = None,
                "content" => {
                    let Some(parameter) = within.as_ref().and_then(|name| read.parameters.get_mut(name))
                    else {
                        continue;
                    };
                    parameter.default = get("default");
                    parameter.content = match get("type").as_deref() {
                        Some("boolean") => Content::Flag,
                        Some("integer" | "second") => Content::Number,
                        Some("select") => Content::Choice(Vec::new()),
                        _ => Content::Text,
                    };
                }
                "option" => {
                    let parameter = within.as_ref().and_then(|name| read.parameters.get_mut(name));
                    if let (Some(Parameter { content: Content::Choice(choices), .. }), Some(value)) =
                        (parameter, get("value"))
                    {
                        choices.push(value);
                    }
                }
                "action" => read.actions.extend(get("name")),
                _ => {}
            }
        }
        match begun {
            true if !read.actions.is_empty() => Ok(read),
            true => Err("it names no actions".to_owned()),
            false => Err("it is not that of a fence agent".to_owned()),
        }
    }

    /// Whether it knows that action.
    pub fn can(&self, action: &str) -> bool {
        self.actions.iter().any(|known| known == action)
    }

    /// Whether of two names, with `_`, one is the older name of the other.
    pub fn is_one(&self, a: &str, b: &str) -> bool {
        let obsoletes = |new: &str, old: &str| {
            self.parameters.get(new).is_some_and(|parameter| parameter.obsoletes.as_deref() == Some(old))
        };
        obsoletes(a, b) || obsoletes(b, a)
    }

    /// Names that look like this one, nearest first; at most three.
    pub fn like(&self, name: &str) -> Vec<&str> {
        let mut near: Vec<(usize, &str)> = self
            .parameters
            .keys()
            .map(|known| (distance(name, known), known.as_str()))
            .filter(|(far, known)| {
                *far <= 2 || known.contains(name) || (name.len() > 3 && name.contains(known))
            })
            .collect();
        near.sort_unstable();
        near.into_iter().take(3).map(|(_, known)| known).collect()
    }
}

/// The version in what `--version` prints; empty where that is none.
pub fn version(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default().trim();
    let is_version = first.starts_with(|c: char| c.is_ascii_digit())
        && first.len() <= 40
        && first.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '~' | '_'));
    if is_version { first.to_owned() } else { String::new() }
}

/// Agents take `-` and `_` for the same.
pub fn same(name: &str) -> String {
    name.replace('-', "_")
}

struct Tag<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

fn tags(text: &str) -> impl Iterator<Item = Tag<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once('<')?;
            rest = after;
            let end = after.find(|c: char| c.is_whitespace() || c == '>' || c == '<').unwrap_or(after.len());
            let name = after.get(..end)?.trim_end_matches('/');
            let (attributes, left) = attributes(after.get(end..)?);
            rest = left;
            if !name.is_empty() {
                return Some(Tag { name, attributes });
            }
        }
    })
}

/// `key="value"` until the tag's end, and what is behind it.
fn attributes(text: &str) -> (Vec<(&str, &str)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/' || c == '?');
        let end =
            rest.find(|c: char| c == '=' || c == '>' || c == '<' || c.is_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let Some(value) = after.strip_prefix('=') else {
            // The end of the tag, or something that is no attribute: then the tag has no more of them.
            return (found, rest.get(end..).unwrap_or_default());
        };
        let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            return (found, value);
        };
        let Some((value, after)) = value[1..].split_once(quote) else { return (found, "") };
        found.push((key, value));
        rest = after;
    }
}

fn plain(value: &str) -> String {
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    named.iter().fold(value.to_owned(), |text, (entity, plain)| text.replace(entity, plain))
}

/// How many letters are other, too many or too few.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let here = (before + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            before = row[j + 1];
            row[j + 1] = here;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: &str = r#"<?xml version="1.0" ?>
<resource-agent name="fence_x" shortdesc="a < b &amp; c" >
<longdesc>It's <b>no</b> well-formed text: 1 < 2, "quotes", a=b</longdesc>
<parameters>
	<parameter name="ip" unique="0" required="1" obsoletes="ipaddr">
		<getopt mixed="-a, --ip=[ip]" />
		<content type="string"  />
	</parameter>
	<parameter name="snmp-version" unique="0" required="0">
		<content type="select" default="1"  >
			<option value="1" />
			<option value="2c" />
		</content>
	</parameter>
	<parameter name="ipport" required="0"><content type="integer" default="&quot;161&quot;"/></parameter>
	<parameter name="ssl" required="0"><content type='boolean' default="1"/></parameter>
</parameters>
<actions>
	<action name="on" automatic="0"/>
	<action name="off" />
	<action name="status" />
</actions>
</resource-agent>"#;

    #[test]
    fn what_an_agent_says_of_itself_is_read() {
        let read = Metadata::read(AGENT).expect("it is one");
        assert_eq!(read.actions, ["on", "off", "status"]);
        assert_eq!(read.parameters.keys().collect::<Vec<_>>(), ["ip", "ipport", "snmp_version", "ssl"]);
        let ip = &read.parameters["ip"];
        assert!(ip.required && ip.obsoletes.as_deref() == Some("ipaddr") && ip.content == Content::Text);
        let version = &read.parameters["snmp_version"];
        assert_eq!(version.content, Content::Choice(vec!["1".to_owned(), "2c".to_owned()]));
        assert_eq!(version.default.as_deref(), Some("1"));
        assert_eq!(read.parameters["ipport"].content, Content::Number);
        assert_eq!(read.parameters["ipport"].default.as_deref(), Some("\"161\""));
        assert_eq!(
            (&read.parameters["ssl"].content, read.parameters["ssl"].default.as_deref()),
            (&Content::Flag, Some("1"))
        );
    }

    #[test]
    fn a_version_is_a_word_that_begins_with_a_digit() {
        assert_eq!(version("4.12.1\nCopyright (C) Red Hat\n"), "4.12.1");
        for text in ["", "usage: fence_x", "4.12.1; rm", "\n4.12.1"] {
            assert_eq!(version(text), "", "{text:?}");
        }
    }

    #[test]
    fn what_is_none_is_told() {
        assert_eq!(Metadata::read("usage: ..."), Err("it is not that of a fence agent".to_owned()));
        assert_eq!(Metadata::read("<resource-agent>"), Err("it names no actions".to_owned()));
        for text in
            ["<", "<a", "<a b", "<a b=", "<a b=\"", "<a b=\"c", "</>", "<<>>", "<a b='c' =d>", "<ä ö=\"ü\"/>"]
        {
            assert!(Metadata::read(text).is_err(), "{text}");
        }
        // Cut off anywhere it is read as far as it goes, and no further.
        for end in (0..AGENT.len()).filter(|end| AGENT.is_char_boundary(*end)) {
            let _ = Metadata::read(&AGENT[..end]);
        }
    }

    #[test]
    fn names_that_look_alike_are_offered() {
        let read = Metadata::read(AGENT).expect("it is one");
        assert_eq!(read.like("ipp"), ["ip", "ipport"]);
        assert_eq!(read.like("snmp_verison"), ["snmp_version"]);
        assert!(read.like("zzzzzz").is_empty());
    }
}
