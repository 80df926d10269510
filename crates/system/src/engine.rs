//! The engine that searches for digests, as the environment chooses it.

use std::env;
use std::time::Instant;

use kendall_digest::Engine;

/// The engine that the environment names ([`Engine::VARIABLE`]), or the fastest. It is read here and nowhere else: `digest` itself
/// knows neither the environment nor the time.
///
/// # Errors
/// Says in words why there is no engine of the name that the environment gives.
pub fn digest_engine() -> Result<Engine, String> {
    let forced = env::var(Engine::VARIABLE).ok();
    let begun = Instant::now();
    Engine::choose(forced.as_deref(), || begun.elapsed())
        .map_err(|error| format!("{}: {error}", Engine::VARIABLE))
}
