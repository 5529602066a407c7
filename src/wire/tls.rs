//! The TLS configuration of all outgoing connections: `ring`, with the machine's certificates and those of a setting.

use std::{
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use rustls_platform_verifier::Verifier;
use url::Url;

use crate::this_machine;

/// The time after which the machine's certificates are loaded again for a new configuration.
const MAX_AGE: Duration = Duration::from_secs(3600);

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
        let certificates = certificates.map_err(|error| invalid(error.to_string()))?;
        match certificates.is_empty() {
            true => Err(invalid("it contains no certificate in PEM format".to_owned())),
            false => Ok(Self { pem, certificates }),
        }
    }

    /// Returns the certificates in the format PEM; `None` if there are none.
    pub fn pem(&self) -> Option<&[u8]> {
        (!self.certificates.is_empty()).then_some(&*self.pem)
    }
}

/// The certificate by which a client is known to a server, with its key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads a certificate, with those of its authorities if there are several, and its key, both in the format PEM.
    ///
    /// # Errors
    ///
    /// If there is no certificate or no key, or one is not valid PEM.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> io::Result<Self> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| invalid(format!("the key: {error}")))?;
        Ok(Self { chain: Authorities::from_pem(chain.to_vec())?.certificates, key })
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
        builder.dangerous().with_custom_certificate_verifier(machine_verifier()?).with_no_client_auth()
    } else {
        builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    })
}

/// Creates a configuration for clients of the service at `base` that speak HTTP/1.1, directly or through a proxy. The
/// machine's certificates are loaded only if a connection may use TLS, which is never the case for a service of this machine
/// without TLS.
///
/// # Errors
///
/// If a connection may use TLS and there are no certificates to trust.
pub fn client_of(base: &Url) -> io::Result<ClientConfig> {
    let mut config = client(base.scheme() == "https" || !this_machine::is_named_by(base))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Returns the verifier that trusts the machine's certificates. Loading them takes several milliseconds, so they are loaded
/// again only after [`MAX_AGE`], in case they have changed. A failure is not remembered.
fn machine_verifier() -> io::Result<Arc<Verifier>> {
    static LOADED: Mutex<Option<(Instant, Arc<Verifier>)>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, verifier)) = &*loaded
        && at.elapsed() < MAX_AGE
    {
        return Ok(verifier.clone());
    }
    let verifier = Arc::new(Verifier::new(Arc::new(ring::default_provider())).map_err(io::Error::other)?);
    *loaded = Some((Instant::now(), verifier.clone()));
    Ok(verifier)
}

/// Creates a configuration for clients that trust these authorities and those of the machine.
///
/// # Errors
///
/// If there are no certificates to trust, or one of them is not valid.
pub fn client_trusting(authorities: &Authorities) -> io::Result<ClientConfig> {
    client_as(authorities, None)
}

/// Creates a configuration for clients that trust these authorities and those of the machine, and are known to the server
/// by a certificate.
///
/// # Errors
///
/// If there are no certificates to trust, or one of them is not valid, or the key does not belong to the certificate.
pub fn client_as(authorities: &Authorities, identity: Option<Identity>) -> io::Result<ClientConfig> {
    let verifier = if authorities.certificates.is_empty() {
        machine_verifier()?
    } else {
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(authorities.certificates.iter().cloned(), provider);
        Arc::new(verifier.map_err(io::Error::other)?)
    };
    let builder = builder().dangerous().with_custom_certificate_verifier(verifier);
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(Identity { chain, key }) => {
            builder.with_client_auth_cert(chain, key).map_err(|error| invalid(error.to_string()))
        }
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
}
