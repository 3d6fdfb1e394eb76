//! What AWS does not say itself.

use super::super::ServiceError;
use super::*;

/// The SDK's own words are that nobody of its chain has credentials.
#[test]
fn why_there_are_no_credentials_and_that_a_proxy_is_not_asked_is_told() {
    let asked = RequestContext {
        of: "EC2".to_owned(),
        by: "the chain".to_owned(),
        proxy: Some("HTTPS_PROXY is set, and no proxy is asked".to_owned()),
        unheard: Some("http://169.254.169.254: no answer in time".to_owned()),
    };
    let none = || {
        Some(Box::new(SdkError::<ServiceError, _>::construction_failure(CredentialsError::not_loaded(
            "nobody",
        ))))
    };
    let said = failure("StopInstances", &asked, SendOutcome::NotBegun, none());
    assert!(
        said.words.ends_with("(asked last: http://169.254.169.254: no answer in time)"),
        "{}",
        said.words
    );
    let said =
        failure::<ServiceError>("StopInstances", &asked, SendOutcome::NeverSent("refused".to_owned()), None);
    assert_eq!(said.words, "StopInstances: EC2: refused (HTTPS_PROXY is set, and no proxy is asked)");
}
