//! Where on the web may be asked.

use std::net::IpAddr;

use reqwest::Url;

/// Whether nobody on the way reads, or says, what is said there: by TLS, or as it does not leave this machine. Where that is not so a
/// stranger on the way may say that a machine is off (S1).
pub fn is_private(url: &Url) -> bool {
    let stays = |host: &str| match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost",
    };
    url.scheme() == "https" || url.host_str().is_some_and(stays)
}

/// The same, or as it does not leave the machine's host: the addresses of metadata servers (link-local), which say no power.
pub fn stays_near(url: &Url) -> bool {
    let is_near = |host: &str| match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_unicast_link_local(),
        Err(_) => false,
    };
    is_private(url) || url.host_str().is_some_and(is_near)
}

/// Whether may be asked there. `plain_http` lets http leave the machine, never with a token; `example` shows a good URL.
pub fn check(text: &str, plain_http: bool, has_token: bool, example: &str) -> Result<Url, String> {
    let url =
        Url::parse(text).map_err(|error| format!("is no URL ({error}), expected one like {example:?}"))?;
    if !url.has_host() {
        return Err("names no host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("carries a user or password: give a token by token_file, token_env or token_credential"
            .to_owned());
    }
    if url.fragment().is_some() {
        return Err("has a fragment (#...), which is never sent".to_owned());
    }
    match url.scheme() {
        "http" | "https" if is_private(&url) => Ok(url),
        "http" if plain_http && has_token => {
            Err("a token is never sent over plain http: give an https url".to_owned())
        }
        "http" if plain_http => Ok(url),
        "http" => {
            Err("expected https; http only to a loopback address, or with plain_http = true, where anybody \
                       on the way may forge an answer"
                .to_owned())
        }
        other => Err(format!("has the scheme {other}, expected https")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, plain_http: bool, has_token: bool) -> Result<Url, String> {
        super::check(text, plain_http, has_token, "https://storage.example/release")
    }

    #[test]
    fn urls_that_cannot_be_right_are_refused_with_what_would_be() {
        for (url, word) in [
            ("storage.example/release", "is no URL"),
            ("http://storage.example/", "expected https"),
            ("http://127.0.0.1.storage.example/", "expected https"),
            ("ftp://storage.example/", "expected https"),
            ("https://user:hunter2@storage.example/", "token_file"),
            ("https://storage.example/#part", "fragment"),
        ] {
            let why = check(url, false, false).expect_err(url);
            assert!(why.contains(word) && !why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn plain_http_goes_to_loopback_or_where_it_is_named_and_never_with_a_token() {
        for url in ["http://127.0.0.1:8080/", "http://127.9.9.9/", "http://[::1]/", "http://localhost/"] {
            check(url, false, true).expect(url);
        }
        check("http://storage.example/", true, false).expect("it is named");
        let why = check("http://storage.example/", true, true).expect_err("a token");
        assert!(why.contains("never sent over plain http"), "{why}");
        check("https://storage.example/", false, true).expect("https");
    }

    #[test]
    fn plain_http_is_for_this_machine_and_a_metadata_service_alone() {
        for (text, private, near) in [
            ("https://oauth2.googleapis.com/token", true, true),
            ("http://oauth2.googleapis.com/token", false, false),
            ("http://127.0.0.1:8080/t", true, true),
            ("http://127.9.9.9/t", true, true),
            ("http://[::1]/t", true, true),
            ("http://localhost/t", true, true),
            ("http://169.254.169.254/t", false, true),
            ("http://10.0.0.1/t", false, false),
            ("http://127.0.0.1.example/t", false, false),
        ] {
            let url = Url::parse(text).expect("a URL");
            assert_eq!((is_private(&url), stays_near(&url)), (private, near), "{text}");
        }
    }
}
