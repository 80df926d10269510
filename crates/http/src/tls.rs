//! TLS: the certificates to trust, and the protocol to negotiate.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::error::HttpError;
use crate::options::{Trust, Version};

/// The TLS configuration of a client of this version of HTTP, for the servers that it trusts.
pub(crate) fn config(trust: &Trust, version: Version) -> Result<ClientConfig, HttpError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    // QUIC only supports 1.3 (RFC 9001, section 4.2).
    let builder = match version {
        Version::Http3 => builder.with_protocol_versions(&[&rustls::version::TLS13])?,
        Version::Http1 | Version::Http2 => builder.with_safe_default_protocol_versions()?,
    };
    let builder = match trust {
        Trust::Machine => builder.with_root_certificates(machine_roots()?),
        Trust::File(path) => builder.with_root_certificates(roots_of(path)?),
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(Credulous(provider))),
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![alpn(version).to_vec()];
    Ok(config)
}

/// The ALPN name of a version of HTTP (RFC 7301; RFC 9113, 3.1; RFC 9114, 3.1).
pub(crate) fn alpn(version: Version) -> &'static [u8] {
    match version {
        Version::Http1 => b"http/1.1",
        Version::Http2 => b"h2",
        Version::Http3 => b"h3",
    }
}

fn machine_roots() -> Result<RootCertStore, HttpError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or_else(|| "none was found".to_owned(), ToString::to_string);
        return Err(HttpError::NoRoots { why });
    }
    Ok(roots)
}

fn roots_of(path: &Path) -> Result<RootCertStore, HttpError> {
    let failed = |why: String| HttpError::Certificates { path: path.into(), why };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))? {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() { Err(failed("it has none".into())) } else { Ok(roots) }
}

/// Accepts every certificate, and only checks that the server has its key.
#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
