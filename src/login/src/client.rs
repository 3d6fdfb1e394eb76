//! A client of an API server, but for its connections of TCP and its requests' bodies: these are its asker's.

use http::{Request, Response, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::Connection;
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use crate::{Wrong, chain};

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

/// A client whose requests, with the address and the credentials of that login, go by `sends`.
///
/// # Errors
/// Its credentials are of no use.
pub fn client<S, B>(config: &Config, sends: S) -> kube::Result<Client>
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
    B: http_body::Body<Data = <Body as http_body::Body>::Data, Error: Into<BoxError>> + Send + 'static,
{
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(S::Error::into)
        .service(sends);
    Ok(Client::new(service, config.default_namespace.clone()))
}
