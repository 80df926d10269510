//! Other programs that compute digests, where they are installed.

use std::process::Command;

/// What one thread of OpenSSL computes of SHA-256 of 8 bytes, in million a second.
pub(crate) fn openssl_m_per_s() -> Option<f64> {
    let told = told("openssl", &["speed", "-mr", "-seconds", "1", "-bytes", "8", "-evp", "sha256"])?;
    // `+F:25:sha256:` and the bytes a second.
    let bytes_per_s = told.lines().rfind(|line| line.starts_with("+F:"))?.rsplit(':').next()?;
    bytes_per_s.parse::<f64>().ok().map(|bytes_per_s| bytes_per_s / 8.0 / 1e6)
}

/// What all processors compute of the digests of one of hashcat's modes with its own benchmark, in million a second.
pub(crate) fn hashcat_m_per_s(mode: &str) -> Option<f64> {
    let told = told("hashcat", &["--benchmark", "--hash-type", mode, "--machine-readable", "--quiet"])?;
    // For each device its number, the kind of digest, two clocks, a time, and the candidates a second.
    let devices = told.lines().filter_map(|line| {
        let [_, of, _, _, _, per_s] = line.split(':').collect::<Vec<_>>()[..] else { return None };
        per_s.parse::<f64>().ok().filter(|_| of == mode)
    });
    let per_s: f64 = devices.sum();
    (per_s > 0.0).then_some(per_s / 1e6)
}

/// What a program prints, if it is there and succeeds.
fn told(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
