//! The laboratory's keys, which are public: they make a client do all the work of checking a server, without protecting
//! anything.
//!
//! An authority with a fixed key signs the certificate of each server, whose own key is fresh. Clients trust only the
//! authority. Sessions are not resumed, so that every handshake is complete.

use std::sync::{Arc, OnceLock};

use kendall_curve::curvecp::{DomainName, SecretKey};
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The name of every server of the laboratory.
const NAME: &str = "transport.test";
/// The prefix of the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410, section 7).
const ED25519_PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// The key of the authority.
const AUTHORITY: [u8; 32] = *b"kendall transport laboratory, CA";
/// CurveCP's secret key of every server.
const CURVE: [u8; 32] = *b"kendall transport laboratory, CP";

/// The name that clients expect in a certificate.
pub(crate) fn server_name() -> ServerName<'static> {
    ServerName::try_from(NAME).expect("this is a host's name")
}

/// The name that clients expect, as text.
pub(crate) fn host() -> &'static str {
    NAME
}

/// The long-term key of CurveCP.
pub(crate) fn curve_secret() -> SecretKey {
    SecretKey::from_bytes(CURVE)
}

/// The domain name of CurveCP.
pub(crate) fn curve_name() -> DomainName {
    DomainName::new(NAME).expect("this is a domain name")
}

fn authority_key() -> Result<KeyPair, rcgen::Error> {
    let key: Vec<u8> = ED25519_PKCS8.iter().chain(&AUTHORITY).copied().collect();
    KeyPair::try_from(key)
}

fn authority() -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(Vec::<String>::new())?;
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    Ok(parameters)
}

/// The certificate of a new server, signed by the authority, and its key.
fn identity() -> Result<(Certificate, KeyPair), rcgen::Error> {
    let key = KeyPair::generate()?;
    let issuer = Issuer::new(authority()?, authority_key()?);
    let certificate = CertificateParams::new(vec![NAME.to_owned()])?.signed_by(&key, &issuer)?;
    Ok((certificate, key))
}

/// TLS 1.3 of a server with a new key, without session tickets.
pub(crate) fn server_tls() -> Result<Arc<ServerConfig>, rcgen::Error> {
    let (certificate, key) = identity()?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites of TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("the key is the certificate's");
    tls.send_tls13_tickets = 0;
    Ok(Arc::new(tls))
}

/// TLS 1.3 of a client that trusts the authority and resumes no session. The same for all connections.
pub(crate) fn client_tls() -> Result<Arc<ClientConfig>, rcgen::Error> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let mut roots = RootCertStore::empty();
    roots.add(authority()?.self_signed(&authority_key()?)?.der().clone()).expect("it is a certificate");
    let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites of TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.resumption = Resumption::disabled();
    Ok(CONFIG.get_or_init(|| Arc::new(tls)).clone())
}
