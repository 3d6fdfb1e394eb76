//! The kind `http`: a GET whose status says whether a node recovered.

use picket_answers::liveness::Look;
use picket_core::ids::NodeId;
use picket_reach::token::Token;
use picket_reach::web::{self, NoAnswer};
use picket_reach::{Settings, address, excerpt};
use reqwest::{Client, Url};
use tokio::time::Instant;

const EXAMPLE: &str = "https://{node}.example:10248/healthz";

/// A probe for many nodes.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    url: String,
    plain_http: bool,
    body: Option<String>,
    token: Option<Token>,
    client: Client,
}

impl Probe {
    /// Keys: `url` (`{node}` in it is the node's name), `body` (a text that a good answer has), `ca_file`, `plain_http`,
    /// `token_file` or `token_env` or `token_credential`.
    pub(crate) fn read(settings: &mut Settings<'_>) -> Option<Self> {
        let url = settings.needed("url", &format!("{EXAMPLE:?}"));
        let plain_http = settings.flag("plain_http");
        let token = Token::read(settings);
        let ca_file = settings.text("ca_file").map(std::path::PathBuf::from);
        let body = settings.text("body");
        let url = url?;
        let checked = address::check(&url.replace("{node}", "n1"), plain_http, token.is_some(), EXAMPLE);
        let https = match checked {
            Ok(url) => url.scheme() == "https",
            Err(why) => {
                settings.fault("url", why);
                return None;
            }
        };
        if !https && ca_file.is_some() {
            settings.fault("ca_file", "is of no use with http: give an https url");
        }
        match web::client(https, ca_file.as_deref()) {
            Ok(client) => Some(Self { url, plain_http, body, token, client }),
            Err(why) => {
                settings.fault("ca_file", why);
                None
            }
        }
    }

    pub(crate) fn of(&self, node: &NodeId) -> Result<Http, String> {
        let url = self.url.replace("{node}", node.as_str());
        let url = address::check(&url, self.plain_http, self.token.is_some(), EXAMPLE)?;
        Ok(Http { url, probe: self.clone() })
    }
}

/// A probe of one node.
#[derive(Debug)]
pub(crate) struct Http {
    url: Url,
    probe: Probe,
}

impl Http {
    pub(crate) async fn ask(&self, end: Instant) -> Look {
        let place = self.url.origin().ascii_serialization();
        let request = self.probe.client.get(self.url.clone());
        let answer = match web::exchange(request, self.probe.token.as_ref(), end).await {
            Ok(answer) => answer,
            Err(NoAnswer::NeverSent(why) | NoAnswer::Broken(why)) => {
                return Look::Unanswered(format!("{place}: {why}"));
            }
            Err(NoAnswer::Late) => return Look::Unanswered(format!("{place} did not answer in time")),
        };
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        // A far side may send back what it got, and this goes into logs and records.
        let text = self.probe.token.as_ref().map_or(text.clone(), |token| token.redact(&text));
        let said = match excerpt(text.as_bytes()) {
            words if words.is_empty() => format!("{place} answered {}", answer.code),
            words => format!("{place} answered {}: {words}", answer.code),
        };
        if !answer.code.is_success() {
            return Look::NotRecovered(said);
        }
        match &self.probe.body {
            Some(wanted) if !text.contains(wanted.as_str()) => {
                Look::NotRecovered(format!("{said} (without {wanted:?})"))
            }
            _ => Look::Recovered(said),
        }
    }
}
