//! What `picketd --print-settings` hides: secrets that somebody wrote into a URL, an argument or a parameter.
//!
//! **Invariants.** Rather too much is hidden than too little: behind the name of a secret, the whole rest of that argument. What
//! is hidden shows as [`HIDDEN`]; no driver's or release's setting may hold it, so that a copy with it is refused.

use serde_json::Value;

/// What stands there instead.
pub(crate) const HIDDEN: &str = "***";

/// A name with one of these between its `-` or `_` names a secret.
const PARTS: [&str; 11] = [
    "pass",
    "passphrase",
    "pw",
    "apikey",
    "kg",
    "credentials",
    "community",
    "authorization",
    "bearer",
    "cookie",
    "ticket",
];
/// A name that has one of these in it names a secret.
const WITHIN: [&str; 4] = ["password", "passwd", "secret", "token"];
/// A name that ends so names a secret.
const ENDS: [&str; 3] = ["api_key", "access_key", "private_key"];
/// A name that ends so tells where a secret is.
const PLACES: [&str; 3] = ["_file", "_env", "_credential"];
/// Options whose next argument is a secret by custom: a password, or `user:password`.
const OPTIONS: [&str; 5] = ["-p", "-P", "-u", "-U", "--user"];

/// A value as it may be shown, under a key.
pub(crate) fn shown(key: &str, value: Value) -> Value {
    match value {
        Value::Object(table) => {
            let each = table.into_iter().map(|(key, value)| (key.clone(), shown(&key, value)));
            Value::Object(each.collect())
        }
        Value::String(_) | Value::Number(_) | Value::Array(_) if is_secret(key) => HIDDEN.into(),
        Value::Array(items) if key == "args" => arguments(items),
        Value::Array(items) => items.into_iter().map(|item| shown(key, item)).collect(),
        Value::String(text) => urls(&text).into(),
        other => other,
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let ends = |of: &[&str]| of.iter().any(|end| name.ends_with(end));
    !ends(&PLACES)
        && (ends(&ENDS)
            || WITHIN.iter().any(|part| name.contains(part))
            || name.split('_').any(|part| PARTS.contains(&part)))
}

fn arguments(items: Vec<Value>) -> Value {
    let mut is_next = false;
    let each = items.into_iter().map(|item| match item {
        Value::String(text) => {
            let (text, next) = if is_next { (HIDDEN.to_owned(), false) } else { argument(&text) };
            is_next = next;
            text.into()
        }
        other => other,
    });
    each.collect()
}

/// An argument, which may be a whole line for a shell; and whether the next one is a secret.
fn argument(text: &str) -> (String, bool) {
    let mut out = String::new();
    let mut words = text.split_inclusive(char::is_whitespace).peekable();
    while let Some(word) = words.next() {
        let bare = word.trim_start_matches(['"', '\'']);
        let end = bare.find(['=', ':']).unwrap_or(bare.trim_end().len());
        let (name, rest) = bare.split_at(end);
        let is_option = name.starts_with('-');
        let is_named = is_secret(name.trim_start_matches('-')) || OPTIONS.contains(&name);
        if is_named && (is_option || !rest.trim_end().is_empty()) {
            out += word.strip_suffix(rest).unwrap_or(word);
            let is_next = rest.is_empty() && words.peek().is_none();
            if !is_next {
                out.extend(rest.chars().next());
                out += HIDDEN;
            }
            return (out, is_next);
        }
        out += &urls(word);
    }
    (out, false)
}

/// A text with the user, the query's values and the fragment of each URL in it hidden.
fn urls(text: &str) -> String {
    let each = text.split_inclusive(char::is_whitespace).map(|word| match word.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", url(rest)),
        None => word.to_owned(),
    });
    each.collect()
}

/// A URL behind its scheme, to the end of the word.
fn url(text: &str) -> String {
    let (text, fragment) = text.split_once('#').map_or((text, None), |(text, rest)| (text, Some(rest)));
    let (text, query) = text.split_once('?').map_or((text, None), |(text, rest)| (text, Some(rest)));
    let (host, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let host = host.rsplit_once('@').map_or(host.to_owned(), |(_, host)| format!("{HIDDEN}@{host}"));
    let mut out = host + path;
    for (at, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out += if at == 0 { "?" } else { "&" };
        match pair.split_once('=') {
            // What stands for the node's name is no secret.
            Some((_, value)) if value.starts_with('{') && value.ends_with('}') => out += pair,
            Some((name, _)) => out += &format!("{name}={HIDDEN}"),
            None => out += HIDDEN,
        }
    }
    if fragment.is_some() {
        out += &format!("#{HIDDEN}");
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_form_of_a_secret_in_a_text_is_hidden() {
        for (text, wanted) in [
            ("https://u:p@h:8443/x", "https://***@h:8443/x"),
            ("https://token@h", "https://***@h"),
            ("https://a@b@h/@c", "https://***@h/@c"),
            ("https://h/x?token=t&a=b&c", "https://h/x?token=***&a=***&***"),
            ("https://h/x?node={node}&k=t", "https://h/x?node={node}&k=***"),
            ("https://h?t=a#b", "https://h?t=***#***"),
            ("see https://u:p@h and http://h?k=t", "see https://***@h and http://h?k=***"),
            ("https://h/x/{node}", "https://h/x/{node}"),
            ("https://[::1]:2379", "https://[::1]:2379"),
            ("spiffe://lab/ns/*", "spiffe://lab/ns/*"),
            ("alice@example.org", "alice@example.org"),
            ("/etc/picket/password", "/etc/picket/password"),
        ] {
            assert_eq!(shown("url", json!(text)), json!(wanted));
        }
    }

    #[test]
    fn each_form_of_a_secret_in_arguments_is_hidden() {
        for (args, wanted) in [
            (json!(["--password", "a b", "--on"]), json!(["--password", "***", "--on"])),
            (json!(["--password=a", "-v"]), json!(["--password=***", "-v"])),
            (json!(["passwd=a"]), json!(["passwd=***"])),
            (json!(["--api-key", "a"]), json!(["--api-key", "***"])),
            (json!(["--auth-token=a"]), json!(["--auth-token=***"])),
            (json!(["-p", "a", "-u", "b:c"]), json!(["-p", "***", "-u", "***"])),
            (json!(["-H", "Authorization: Bearer a"]), json!(["-H", "Authorization:***"])),
            (json!(["-H", "X-Auth-Token: a"]), json!(["-H", "X-Auth-Token:***"])),
            (json!(["-c", "x --password 'a b' y"]), json!(["-c", "x --password ***"])),
            (json!(["-c", "x -H 'Cookie: a'"]), json!(["-c", "x -H 'Cookie:***"])),
            (json!(["-c", "TOKEN=a x"]), json!(["-c", "TOKEN=***"])),
            (json!(["https://u:p@h/?k=a"]), json!(["https://***@h/?k=***"])),
            (json!(["--url=https://u:p@h"]), json!(["--url=https://***@h"])),
            (json!(["--password-file", "/a", "token"]), json!(["--password-file", "/a", "token"])),
            (json!(["{node}", "--port", "a", 7]), json!(["{node}", "--port", "a", 7])),
        ] {
            assert_eq!(shown("args", args), wanted);
        }
    }

    #[test]
    fn a_parameter_by_the_name_of_a_secret_is_hidden() {
        let parameters = json!({
            "snmp_auth_password": "a", "pass": 7, "passwd": "a", "password_file": "/a", "login": "b", "bypass": "c",
            "token_env": "T", "ssl": true, "url": "https://u:p@h",
        });
        let wanted = json!({
            "snmp_auth_password": "***", "pass": "***", "passwd": "***", "password_file": "/a", "login": "b", "bypass": "c",
            "token_env": "T", "ssl": true, "url": "https://***@h",
        });
        assert_eq!(shown("parameters", parameters), wanted);
    }
}
