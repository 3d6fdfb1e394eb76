//! Where gateways answer: one, or several that watch over the same nodes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use picket_proto::client::{BoxError, Gateways, Maker};
use picket_proto::v1::fencing_service_client::FencingServiceClient;

use crate::certificates::Certificates;
use crate::connect::{BadEndpoint, CONNECT, Client, Endpoint, MESSAGE};
use crate::fault::Fault;

/// One endpoint or several, in the order in which they are tried. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints(Vec<Endpoint>);

impl Endpoints {
    /// Reads endpoints, separated by commas.
    pub fn parse(text: &str) -> Result<Self, BadEndpoint> {
        text.split(',').map(|one| Endpoint::parse(one.trim())).collect::<Result<_, _>>().map(Self)
    }

    /// The endpoints with what TLS wants, where they speak that.
    pub fn with(self, given: &Certificates) -> Result<Self, String> {
        self.0.into_iter().map(|one| one.with(given)).collect::<Result<_, _>>().map(Self)
    }

    /// Connects to the first that answers, so that nobody being there shows at once.
    pub async fn connect(&self) -> Result<Client, Fault> {
        for one in &self.0 {
            one.way()?;
        }
        let gateways = Gateways::new(self.0.iter().map(ToString::to_string), self.maker());
        let each = CONNECT + Duration::from_secs(1);
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        match tokio::time::timeout(each * count, gateways.connect()).await {
            Ok(Ok(())) => Ok(FencingServiceClient::new(gateways).max_decoding_message_size(MESSAGE)),
            Ok(Err(unreached)) => Err(self.unreachable(unreached.0).await),
            // The connector's own limit does not cover a listener that accepts and then says nothing.
            Err(_) => Err(self.silent()),
        }
    }

    /// How the way to an endpoint is made: to one of ours, or to one that a gateway names, with the same certificates.
    fn maker(&self) -> Arc<Maker> {
        let known = self.0.clone();
        Arc::new(move |name: &str| {
            let own = known.iter().find(|one| one.to_string() == name).cloned();
            let endpoint = match own {
                Some(own) => own,
                None => {
                    let files = known.iter().find_map(Endpoint::files);
                    Endpoint::parse(name)?
                        .with_files(files)
                        .ok_or_else(|| BoxError::from("no certificates for it"))?
                }
            };
            endpoint.way().map_err(|fault| BoxError::from(fault.to_string()))
        })
    }

    async fn unreachable(&self, mut unreached: Vec<(String, BoxError)>) -> Fault {
        if let ([one], [_]) = (&*self.0, &*unreached) {
            let (_, error) = unreached.remove(0);
            return one.with_hint(one.unreachable(&*error)).await;
        }
        let told = unreached.iter().map(|(name, error)| {
            let own = self.0.iter().find(|one| one.to_string() == *name);
            own.map_or_else(|| format!("{name}: {error}"), |own| own.unreachable(&**error).in_short())
        });
        Fault::Unreachable {
            endpoint: self.to_string(),
            why: told.collect::<Vec<_>>().join("; "),
            check: "is picketd running on one of them, and are these their addresses?".to_owned(),
        }
    }

    /// The fault, and what to do where the one port speaks TLS and was asked without.
    pub async fn with_hint(&self, fault: Fault) -> Fault {
        match &*self.0 {
            [one] => one.with_hint(fault).await,
            _ => fault,
        }
    }

    fn silent(&self) -> Fault {
        match &*self.0 {
            [one] => one.silent(),
            _ => Fault::Unreachable {
                endpoint: self.to_string(),
                why: "none of them answers in time".to_owned(),
                check: "are the addresses right, is a firewall in between, does picketd hang?".to_owned(),
            },
        }
    }

    /// The fault of a gateway that answered before and does not any more.
    pub fn lost(&self, why: &str) -> Fault {
        match &*self.0 {
            [one] => one.lost(why),
            all => {
                let refused =
                    all.iter().map(|one| one.lost(why)).find(|fault| matches!(fault, Fault::Refused { .. }));
                refused.unwrap_or_else(|| Fault::Unreachable {
                    endpoint: self.to_string(),
                    why: why.to_owned(),
                    check: "picket gateways tells which of them are there".to_owned(),
                })
            }
        }
    }
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, one) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{one}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_are_read_in_their_order_and_each_must_be_right() {
        let all = Endpoints::parse("http://127.0.0.1:1, unix:/b").expect("two");
        assert_eq!(all.to_string(), "http://127.0.0.1:1, unix:/b");
        let bad = Endpoints::parse("http://127.0.0.1:1,").expect_err("one is empty").to_string();
        assert!(bad.contains("\"\" is no endpoint"), "{bad}");
    }

    #[tokio::test]
    async fn where_none_of_several_answers_each_is_told_with_its_reason() {
        let all = Endpoints::parse("unix:/nowhere/a.sock,unix:/nowhere/b.sock").expect("two");
        let told = all.connect().await.expect_err("nobody is there").to_string();
        assert!(told.contains("unix:/nowhere/a.sock: No such file"), "{told}");
        assert!(told.contains("unix:/nowhere/b.sock: No such file"), "{told}");
    }
}
