//! The TLS configuration of all outgoing connections: `ring`, with the machine's certificates and those of a setting.

use std::{fmt, io, sync::Arc};

use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use rustls_platform_verifier::{BuilderVerifierExt as _, Verifier};

/// Certificates of authorities that are trusted in addition to those of the machine.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Authorities {
    pem: Vec<u8>,
    certificates: Vec<CertificateDer<'static>>,
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authorities({})", self.certificates.len())
    }
}

impl Authorities {
    /// Reads certificates in the format PEM.
    ///
    /// # Errors
    ///
    /// If there is no certificate, or one is not valid PEM.
    pub fn from_pem(pem: Vec<u8>) -> io::Result<Self> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let certificates =
            certificates.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        match certificates.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, "it contains no certificate in PEM format")),
            false => Ok(Self { pem, certificates }),
        }
    }

    /// Returns the certificates in the format PEM; `None` if there are none.
    pub fn pem(&self) -> Option<&[u8]> {
        (!self.certificates.is_empty()).then_some(&*self.pem)
    }
}

/// Creates a configuration for clients. The machine's certificates are loaded only if the client
/// `uses_tls`; otherwise no certificate is trusted.
///
/// # Errors
///
/// If the client uses TLS and there are no certificates to trust.
pub fn client(uses_tls: bool) -> io::Result<ClientConfig> {
    let builder = builder();
    Ok(if uses_tls {
        builder.with_platform_verifier().map_err(io::Error::other)?.with_no_client_auth()
    } else {
        builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    })
}

/// Creates a configuration for clients that trust these authorities and those of the machine.
///
/// # Errors
///
/// If there are no certificates to trust, or one of them is not valid.
pub fn client_trusting(authorities: &Authorities) -> io::Result<ClientConfig> {
    if authorities.certificates.is_empty() {
        return client(true);
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(authorities.certificates.iter().cloned(), provider);
    let verifier = Arc::new(verifier.map_err(io::Error::other)?);
    Ok(builder().dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
}
