//! A throw-away certificate authority: a name that a client asks for goes in, a certificate for it comes out.
//!
//! Made anew at every start; its key never leaves this process's memory. Its certificates hold from 1975 to 4096,
//! because a room's clock may be pinned anywhere between.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The subject is the same in every room, so that an image can hold the link that OpenSSL looks it up by.
pub(crate) const SUBJECT: &str = "Tribunal room authority";
/// Names a client may make up before the oldest are forgotten.
const KEPT: usize = 256;

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    leaf_key: KeyPair,
    leaves: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl Authority {
    pub(crate) fn new() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = named(SUBJECT);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem,
            leaf_key: KeyPair::generate()?,
            leaves: Mutex::default(),
        })
    }

    /// What clients have to trust.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    fn leaf(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leaf) = leaves.get(name) {
            return Some(Arc::clone(leaf));
        }
        let leaf = Arc::new(self.made(name)?);
        if leaves.len() >= KEPT {
            leaves.clear();
        }
        leaves.insert(name.to_owned(), Arc::clone(&leaf));
        Some(leaf)
    }

    fn made(&self, name: &str) -> Option<CertifiedKey> {
        let names = if name.is_empty() {
            // No name was asked for: an address was, and there is only this one.
            vec!["127.0.0.1".to_owned(), "localhost".to_owned()]
        } else {
            vec![name.to_owned()]
        };
        let mut params = CertificateParams::new(names).ok()?;
        params.distinguished_name = named("replayed");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&self.leaf_key, &self.issuer).ok()?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der()));
        let key = rustls::crypto::ring::sign::any_supported_type(&key).ok()?;
        Some(CertifiedKey::new(vec![certificate.der().clone()], key))
    }
}

fn named(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}

impl ResolvesServerCert for Authority {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.leaf(&hello.server_name().unwrap_or_default().to_lowercase())
    }
}
