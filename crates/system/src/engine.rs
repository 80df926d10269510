//! The engine that searches for digests, chosen by the environment.

use std::env;
use std::time::Instant;

use kendall_digest::Engine;

/// The engine of the environment variable [`Engine::VARIABLE`], or the fastest. Only this function reads it: `digest` itself knows
/// neither the environment nor the time.
///
/// # Errors
/// Says in words why there is no engine of the name in the environment.
pub fn digest_engine() -> Result<Engine, String> {
    let forced = env::var(Engine::VARIABLE).ok();
    let begun = Instant::now();
    Engine::choose(forced.as_deref(), || begun.elapsed())
        .map_err(|error| format!("{}: {error}", Engine::VARIABLE))
}
