//! What `picketd --print-settings` hides: secrets that somebody wrote into a URL, an argument or a
//! parameter.
//!
//! # Invariants
//!
//! - Rather too much is hidden than too little: all arguments of a program, and the whole path of an http
//!   URL, which is the secret of many a webhook. Shown by
//!   `of_arguments_what_stands_for_the_node_alone_is_shown`,
//!   `a_secret_in_a_url_or_an_argument_is_hidden_and_the_copy_is_refused`.
//! - What is hidden shows as [`HIDDEN`]. No setting may hold that, so that a copy with it is refused. Shown
//!   by `a_secret_in_a_url_or_an_argument_is_hidden_and_the_copy_is_refused`.

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
/// Under this key an http URL is the name of a machine, as Compute Engine's selfLink: its path tells which one it is.
const MACHINE: &str = "instance";
/// A name that ends so tells where a secret is.
const PLACES: [&str; 3] = ["_file", "_env", "_credential"];

/// A value as it may be shown, under a key.
pub(crate) fn shown(key: &str, value: Value) -> Value {
    match value {
        Value::Object(table) => {
            let each = table.into_iter().map(|(key, value)| (key.clone(), shown(&key, value)));
            Value::Object(each.collect())
        }
        Value::String(_) | Value::Number(_) | Value::Array(_) if is_secret(key) => HIDDEN.into(),
        // Nobody knows which word of a foreign program's is a secret.
        Value::Array(items) if key == "args" => items.into_iter().map(argument).collect(),
        Value::Array(items) => items.into_iter().map(|item| shown(key, item)).collect(),
        Value::String(text) => urls(&text, key != MACHINE).into(),
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

fn argument(item: Value) -> Value {
    match &item {
        Value::String(text) if is_placeholder(text) => item,
        _ => HIDDEN.into(),
    }
}

/// What stands for the node's name, as `{node}`.
fn is_placeholder(text: &str) -> bool {
    text.strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'))
        .is_some_and(|name| !name.contains(['{', '}']))
}

/// A text with the user, the query's values and the fragment of each URL in it hidden; the path of an http URL too, if `hides_paths`.
fn urls(text: &str, hides_paths: bool) -> String {
    let each = text.split_inclusive(char::is_whitespace).map(|word| match word.split_once("://") {
        // Several in one word: where one ends is anybody's guess.
        Some((_, rest)) if rest.contains("://") => HIDDEN.to_owned(),
        Some((scheme, rest)) => format!("{scheme}://{}", url(rest, hides_paths && is_http(scheme))),
        None => match word.rsplit_once('@') {
            Some((user, host)) if user.contains(':') => format!("{HIDDEN}@{host}"),
            _ => word.to_owned(),
        },
    });
    each.collect()
}

/// The paths of other schemes are names: of callers (`spiffe`), of machines (`aws`, `gce`).
fn is_http(scheme: &str) -> bool {
    let scheme = scheme.to_ascii_lowercase();
    scheme.ends_with("http") || scheme.ends_with("https")
}

/// A URL behind its scheme, to the end of the word.
fn url(text: &str, hides_path: bool) -> String {
    let (text, fragment) = text.split_once('#').map_or((text, None), |(text, rest)| (text, Some(rest)));
    let (text, query) = text.split_once('?').map_or((text, None), |(text, rest)| (text, Some(rest)));
    let (host, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let host = host.rsplit_once('@').map_or(host.to_owned(), |(_, host)| format!("{HIDDEN}@{host}"));
    let hidden = |part| if str::is_empty(part) || is_placeholder(part) { part } else { HIDDEN };
    let mut out = match hides_path {
        true => host + &path.split('/').map(hidden).collect::<Vec<_>>().join("/"),
        false => host + path,
    };
    for (at, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out += if at == 0 { "?" } else { "&" };
        match pair.split_once('=') {
            Some((_, value)) if is_placeholder(value) => out += pair,
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
            ("https://u:p@h:8443/x", "https://***@h:8443/***"),
            ("https://token@h", "https://***@h"),
            ("https://a@b@h/@c", "https://***@h/***"),
            ("https://hooks.example/services/T000/B000/X", "https://hooks.example/***/***/***/***"),
            ("HTTP://h:80/T000/", "HTTP://h:80/***/"),
            ("https://h/?token=t&a=b&c", "https://h/?token=***&a=***&***"),
            ("https://h/x?node={node}&k=t", "https://h/***?node={node}&k=***"),
            ("https://h?t=a#b", "https://h?t=***#***"),
            ("see https://u:p@h and http://h?k=t", "see https://***@h and http://h?k=***"),
            ("https://h/x/{node}", "https://h/***/{node}"),
            ("aws:///eu-central-1a/i-0abc", "aws:///eu-central-1a/i-0abc"),
            ("unix:/run/picket/picket.sock", "unix:/run/picket/picket.sock"),
            ("https://[::1]:2379", "https://[::1]:2379"),
            ("spiffe://lab/ns/*", "spiffe://lab/ns/*"),
            ("alice@example.org", "alice@example.org"),
            ("u:p@h:8443", "***@h:8443"),
            ("https://u:p@a,https://u:p@b", "***"),
            ("/etc/picket/password", "/etc/picket/password"),
        ] {
            assert_eq!(shown("url", json!(text)), json!(wanted));
        }
    }

    #[test]
    fn a_machine_that_is_named_by_a_url_is_shown() {
        let link = json!("https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/{node}");
        assert_eq!(shown("instance", link.clone()), link);
        assert_ne!(shown("url", link.clone()), link);
    }

    #[test]
    fn of_arguments_what_stands_for_the_node_alone_is_shown() {
        let args = json!([
            "--password=a",
            "-pSECRET",
            "-uadmin:b",
            "Bearer c",
            "user=d,password=e",
            "{node}",
            "{",
            7
        ]);
        assert_eq!(shown("args", args), json!(["***", "***", "***", "***", "***", "{node}", "***", "***"]));
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
