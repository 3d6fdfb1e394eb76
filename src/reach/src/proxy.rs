//! A proxy that the environment names: none is asked, and whoever set one has to hear that.

use reqwest::Url;

/// What curl and most tools read, for https and for http.
const OF_HTTPS: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const OF_HTTP: [&str; 3] = ["http_proxy", "all_proxy", "ALL_PROXY"];
const EXCEPT: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// That this process's environment names a proxy for that URL, in words; `None`: it names none. What it names is not repeated: it may
/// have a password in it.
pub fn unused(url: &Url) -> Option<String> {
    unused_by(url, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn unused_by(url: &Url, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let of = if url.scheme() == "https" { &OF_HTTPS[..] } else { &OF_HTTP[..] };
    let set = of.iter().find(|name| value(name).is_some())?;
    let host = url.host_str()?;
    let excepted = EXCEPT.iter().find_map(|name| value(name)).unwrap_or_default();
    let is_of = |part: &str| {
        let part = part.trim_start_matches("*.").trim_start_matches('.');
        part == "*" || host == part || host.strip_suffix(part).is_some_and(|before| before.ends_with('.'))
    };
    if excepted.split(',').map(str::trim).filter(|part| !part.is_empty()).any(is_of) {
        return None;
    }
    Some(format!(
        "{set} is set, and no proxy is asked: {host} has to be reached without one (NO_PROXY with {host} says that it is)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_is_set_for_a_place_is_told_without_what_it_is() {
        let proxy = "http://u:hunter2@proxy.example:3128";
        for (url, set, told) in [
            ("https://ec2.eu-central-1.amazonaws.com/", &[][..], None),
            ("https://ec2.eu-central-1.amazonaws.com/", &[("HTTPS_PROXY", proxy)][..], Some("HTTPS_PROXY")),
            ("https://ec2.eu-central-1.amazonaws.com/", &[("all_proxy", proxy)][..], Some("all_proxy")),
            ("https://ec2.eu-central-1.amazonaws.com/", &[("http_proxy", proxy)][..], None),
            ("http://127.0.0.1:5000/", &[("http_proxy", proxy)][..], Some("http_proxy")),
            ("http://127.0.0.1:5000/", &[("HTTPS_PROXY", proxy)][..], None),
            // As curl has it: whoever makes a request to a CGI program may set HTTP_PROXY.
            ("http://127.0.0.1:5000/", &[("HTTP_PROXY", proxy)][..], None),
            ("https://a.example/", &[("https_proxy", proxy), ("NO_PROXY", "b.example, .example")][..], None),
            ("https://a.example/", &[("https_proxy", proxy), ("no_proxy", "*")][..], None),
            ("https://a.example/", &[("https_proxy", proxy), ("no_proxy", "a.example")][..], None),
            ("https://a.example/", &[("https_proxy", proxy), ("no_proxy", "*.example")][..], None),
            (
                "https://aa.example/",
                &[("https_proxy", proxy), ("no_proxy", "a.example,")][..],
                Some("aa.example"),
            ),
        ] {
            let url = Url::parse(url).expect("a URL");
            let value =
                |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            let words = unused_by(&url, value);
            assert_eq!(words.is_some(), told.is_some(), "{url} {set:?}: {words:?}");
            if let Some((words, told)) = words.zip(told) {
                assert!(words.contains(told) && !words.contains("hunter2"), "{words}");
            }
        }
    }
}
