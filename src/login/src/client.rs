//! A client of an API server, but for its connections of TCP and its requests' bodies: these are its asker's.

use std::sync::Arc;

use http::{Request, Response, StatusCode, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::Connection;
use kube::client::{Body, ConfigExt};
use kube::config::AuthInfo;
use kube::{Client, Config};
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use crate::cached_login::{CachedLogin, ValidLogin};
use crate::plugin::Plugin;
use crate::{Known, Wrong, chain};

/// What connects, with TLS.
pub type Connects<T> = BoxCloneSyncService<Uri, MaybeHttpsStream<T>, BoxError>;

/// Whom it believes, and who it is there.
pub(crate) fn tls(config: &Config) -> Result<ClientConfig, Wrong> {
    let wrong = |why: &dyn std::fmt::Display| Wrong::new(format!("its TLS: {why}"));
    let mut config = config.clone();
    // A pod's own CA, which has a file, is read anew by kube as the cluster renews it; no server shows that one as its own.
    let of_kubeconfig = config.root_cert_file.is_none().then_some(config.root_cert.as_mut()).flatten();
    // Taken out: of a certificate that is of no use kube would refuse all.
    let given = of_kubeconfig.map(std::mem::take).filter(|given| !given.is_empty());
    let mut tls = config.rustls_client_config().map_err(|error| wrong(&chain(&error)))?;
    if let Some(given) = given {
        let verifier = picket_trust::verifier_of(given.into_iter().map(CertificateDer::from).collect())
            .map_err(|why| wrong(&format!("certificate-authority {why}")))?;
        tls.dangerous().set_certificate_verifier(verifier);
    }
    Ok(tls)
}

/// TLS on connections that `tcp` makes, within the login's time for connecting, with whom that login believes: what the CAs of its kubeconfig
/// vouch for; and where there is one certificate alone, that one where an API server shows it as its own.
///
/// # Errors
/// A key of it is of no use, or of the certificates none.
pub fn connects<C>(config: &Config, tcp: C) -> Result<Connects<C::Response>, Wrong>
where
    C: Service<Uri, Error: Into<BoxError>, Future: Send + 'static> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Unpin + Send + 'static,
{
    let wrong = |why: &dyn std::fmt::Display| Wrong::new(format!("its TLS: {why}"));
    let tls = tls(config)?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone()).map_err(|error| wrong(&error))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let https = builder.enable_http1().wrap_connector(tcp);
    // TLS is part of it: a far side that accepts connections and shakes no hands is not waited for.
    let within = config.connect_timeout.unwrap_or(std::time::Duration::MAX);
    Ok(BoxCloneSyncService::new(tower::service_fn(move |uri: Uri| {
        let connects = https.clone().oneshot(uri);
        async move {
            let late = |_| Err(BoxError::from("no connection in time"));
            tokio::time::timeout(within, connects).await.unwrap_or_else(late)
        }
    })))
}

/// What sends a request with an address and credentials.
type Sends<B> = BoxCloneSyncService<Request<Body>, Response<B>, BoxError>;

/// A client whose requests, with the address and the credentials of that login, go by what `sends` makes for it. Where a program has the credentials,
/// it is run at the first request, before they end, and after they were refused (401): each time what sends is made anew.
///
/// # Errors
/// Its credentials are of no use.
pub fn client<S, B>(
    known: &Known,
    sends: impl Fn(&Config) -> Result<S, Wrong> + Send + Sync + 'static,
) -> Result<Client, Wrong>
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static,
    B: http_body::Body<Data = <Body as http_body::Body>::Data, Error: Into<BoxError>> + Send + 'static,
{
    let (config, namespace) = (known.config.clone(), known.config.default_namespace.clone());
    let made =
        move |config: &Config| made(config, BoxCloneSyncService::new(sends(config)?.map_err(Into::into)));
    let Some((plugin, cached)) = known.plugin.clone() else {
        return Ok(Client::new(made(&config)?, namespace));
    };
    let last = Mutex::new(None);
    let all = Arc::new(Renewing { config, plugin, cached, made, last });
    let service = tower::service_fn(move |request| {
        let all = all.clone();
        async move { all.send(request).await }
    });
    Ok(Client::new(service, namespace))
}

fn made<B: 'static>(config: &Config, sends: Sends<B>) -> Result<Sends<B>, Wrong> {
    let wrong = |error: kube::Error| Wrong::new(format!("its credentials: {}", chain(&error)));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(wrong)?)
        .layer(config.extra_headers_layer().map_err(wrong)?)
        .service(sends);
    Ok(BoxCloneSyncService::new(service.map_err(Into::into)))
}

/// Sends by the credentials that a program printed.
struct Renewing<F, B> {
    config: Config,
    plugin: Plugin,
    cached: CachedLogin,
    made: F,
    /// What sends by those of that number.
    last: Mutex<Option<(u64, Sends<B>)>>,
}

impl<F: Fn(&Config) -> Result<Sends<B>, Wrong>, B> Renewing<F, B> {
    async fn send(&self, request: Request<Body>) -> Result<Response<B>, BoxError> {
        let good = match self.cached.current(&self.plugin).await {
            Ok(good) => good,
            Err(wrong) => return Err(self.nobody(wrong).await.into()),
        };
        let sends = self.sends(&good)?;
        let answer = sends.oneshot(request).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            self.cached.refused(good.number).await;
        }
        Ok(answer)
    }

    /// There is no login. Whether the API server answers is asked by nobody in particular: a fence waits for one that is not reached, and not
    /// for a program (K9).
    async fn nobody(&self, wrong: Wrong) -> Wrong {
        let mut config = self.config.clone();
        config.auth_info = AuthInfo::default();
        let Ok(sends) = (self.made)(&config) else { return wrong };
        let Ok(request) = Request::get("/version").body(Body::empty()) else { return wrong };
        let answers = sends.oneshot(request).await.is_ok();
        Wrong { answers, ..wrong }
    }

    fn sends(&self, good: &ValidLogin) -> Result<Sends<B>, Wrong> {
        let mut last = self.last.lock();
        if let Some((_, sends)) = last.as_ref().filter(|(number, _)| *number == good.number) {
            return Ok(sends.clone());
        }
        let mut config = self.config.clone();
        config.auth_info = good.credential.of(&config.auth_info);
        let sends = (self.made)(&config)?;
        *last = Some((good.number, sends.clone()));
        Ok(sends)
    }
}
