//! How a client knows that a server is the right one: by the fingerprint of its certificate, which its operator passes on.

use std::fmt::Write;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use sha2::{Digest, Sha256};

use crate::hybrid;

/// The protection of a connection.
#[derive(Clone, Debug)]
pub enum Security {
    /// Nothing: for a server on the loopback.
    Plain,
    /// TLS.
    Tls {
        /// The certificates or keys to trust.
        config: Arc<ClientConfig>,
        /// The name that the server is asked for by.
        name: ServerName<'static>,
    },
}

impl Security {
    /// TLS 1.3 with the server whose certificate has this SHA-256, whatever its name and its issuer.
    ///
    /// # Panics
    /// Never: the provider knows TLS 1.3.
    pub fn pinned(fingerprint: [u8; 32]) -> Self {
        let provider = hybrid::provider();
        let verifier = Arc::new(Pin { fingerprint, provider: Arc::clone(&provider) });
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .expect("the provider knows TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("it is a valid name");
        Self::Tls { config: Arc::new(config), name }
    }
}

/// A fingerprint as operators pass it on: 64 hexadecimal digits.
pub fn show_fingerprint(fingerprint: &[u8; 32]) -> String {
    fingerprint.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads a fingerprint.
///
/// # Errors
/// Says in words what a fingerprint is.
pub fn read_fingerprint(text: &str) -> Result<[u8; 32], String> {
    let refuse = || format!("must be a fingerprint of 64 hexadecimal digits, not {text:?}");
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refuse());
    }
    let mut fingerprint = [0; 32];
    for (place, byte) in fingerprint.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).map_err(|_| refuse())?;
    }
    Ok(fingerprint)
}

/// Trusts one certificate.
#[derive(Debug)]
struct Pin {
    fingerprint: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if <[u8; 32]>::from(Sha256::digest(certificate)) == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General("the server has another certificate than the pinned one".to_owned()))
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_they_are_shown() {
        let fingerprint: [u8; 32] = std::array::from_fn(|place| place as u8 * 7);
        assert_eq!(read_fingerprint(&show_fingerprint(&fingerprint)), Ok(fingerprint));
        for wrong in ["", "00", &"0".repeat(63), &"g".repeat(64), &"é".repeat(32)] {
            assert!(read_fingerprint(wrong).unwrap_err().contains("64 hexadecimal digits"));
        }
    }
}
