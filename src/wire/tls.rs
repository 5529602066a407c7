//! The TLS configuration of all outgoing connections: `ring`, with the machine's certificates.

use std::{io, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Creates a configuration for clients. The machine's certificates are loaded only if the client
/// `uses_tls`; otherwise no certificate is trusted.
///
/// # Errors
///
/// If the client uses TLS and there are no certificates to trust.
pub fn client(uses_tls: bool) -> io::Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions");
    Ok(if uses_tls {
        builder.with_platform_verifier().map_err(io::Error::other)?.with_no_client_auth()
    } else {
        builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    })
}
