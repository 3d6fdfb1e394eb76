//! `{node}`, `{number}`, `{index}` and `{provider_id}` in the texts of a device.

use crate::entry::{Entry, Raw};
use crate::table::Findings;

/// What the placeholders of one node stand for.
#[derive(Clone, Debug)]
pub(crate) struct Placeholders<'a> {
    /// `{node}`: its name.
    pub(crate) node: &'a str,
    /// `{index}`: its place in its host list, from 1.
    pub(crate) index: usize,
    /// `{provider_id}`: what the node's table says.
    pub(crate) provider_id: Option<&'a str>,
}

impl Placeholders<'_> {
    /// `{number}`: the last number in the name, without zeros in front.
    fn number(&self) -> Option<&str> {
        let end = self.node.rfind(|c: char| c.is_ascii_digit())? + 1;
        let start = self.node[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
        let digits = self.node.get(start..end)?;
        let short = digits.trim_start_matches('0');
        Some(if short.is_empty() { "0" } else { short })
    }

    /// Puts them into every text of `entry`.
    pub(crate) fn fill(&self, entry: &mut Entry, log: &Findings) {
        match &mut entry.raw {
            Raw::Text(text) | Raw::Variable(text) if text.contains(['{', '}']) => match self.filled(text) {
                Ok(filled) => *text = filled,
                Err(what) => log.push(entry.place.fault(what)),
            },
            Raw::List(items) => items.iter_mut().for_each(|item| self.fill(item, log)),
            Raw::Table(entries) => entries.values_mut().for_each(|entry| self.fill(entry, log)),
            _ => {}
        }
    }

    fn filled(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            filled.push_str(&rest[..at]);
            let from = &rest[at..];
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                filled.push_str(&from[..1]);
                rest = after;
                continue;
            }
            let Some(name) = from.strip_prefix('{').and_then(|open| open.split_once('}')) else {
                return Err(
                    "a brace is not closed, or was never opened: {{ and }} stand for braces themselves"
                        .to_owned(),
                );
            };
            match name.0 {
                "node" => filled.push_str(self.node),
                "index" => filled.push_str(&self.index.to_string()),
                "number" => filled
                    .push_str(self.number().ok_or_else(|| {
                        format!("{{number}}: there is no number in the name {}", self.node)
                    })?),
                "provider_id" => filled.push_str(self.provider_id.ok_or_else(|| {
                    format!("{{provider_id}}: the table of the node {} has no provider_id", self.node)
                })?),
                other => {
                    return Err(format!(
                        "{{{other}}} stands for nothing: there are {{node}}, {{number}}, {{index}} and {{provider_id}}, and {{{{ for a brace"
                    ));
                }
            }
            rest = name.1;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(node: &str, text: &str) -> Result<String, String> {
        Placeholders { node, index: 3, provider_id: node.strip_prefix("cloud-") }.filled(text)
    }

    #[test]
    fn placeholders_stand_for_the_node() {
        assert_eq!(fill("r1n07", "{node}-bmc.example").as_deref(), Ok("r1n07-bmc.example"));
        assert_eq!(fill("r1n07", "10.1.0.{number}:{index}").as_deref(), Ok("10.1.0.7:3"));
        assert_eq!(fill("r1n00.b", "{number}").as_deref(), Ok("0"));
        assert_eq!(fill("r1n07", "{{node}}").as_deref(), Ok("{node}"));
        assert_eq!(fill("cloud-aws:///z/i-1", "{provider_id}").as_deref(), Ok("aws:///z/i-1"));
    }

    #[test]
    fn what_stands_for_nothing_is_a_fault() {
        for (node, text, what) in [
            ("r1n07", "{nod}", "{nod} stands for nothing"),
            ("r1n07", "{node", "not closed"),
            ("r1n07", "node}", "not closed"),
            ("login", "{number}", "no number in the name login"),
            ("login", "{provider_id}", "the node login has no provider_id"),
        ] {
            let error = fill(node, text).expect_err(text);
            assert!(error.contains(what), "{error}");
        }
    }
}
