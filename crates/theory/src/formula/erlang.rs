//! Erlang's two formulas (1917).

use super::poisson::{Sides, ln_chance, smaller_side};

/// Erlang B: the share of requests lost where `load` = λ·E\[S\] is offered to `servers` servers without a queue. A recursion of
/// positive terms (Jagerman 1974); for very many servers, the probability of exactly m requests at infinitely many servers ÷ that of at
/// most m.
pub fn erlang_b(servers: u32, load: f64) -> f64 {
    const MANY: u32 = 1000;
    if servers > MANY && load > 0.0 {
        let m = f64::from(servers);
        return match load > m {
            true => 1.0 / smaller_side(m, load),
            false => libm::exp(ln_chance(m, load) - Sides::of(m, load).ln_at_most),
        };
    }
    (1..=servers).fold(1.0, |blocked, k| load * blocked / (f64::from(k) + load * blocked))
}

/// Erlang C: the share of requests that wait for one of `servers` servers. `load` = λ·E\[S\] is below `servers`.
pub fn erlang_c(servers: u32, load: f64) -> f64 {
    let (blocked, servers) = (erlang_b(servers, load), f64::from(servers));
    // B / (1 − ρ(1 − B)) without subtracting a number near 1 from 1.
    servers * blocked / (servers - load + load * blocked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_waits_with_its_utilisation() {
        assert!((erlang_c(1, 0.7) - 0.7).abs() < 1e-15);
        assert!((erlang_b(1, 0.7) - 0.7 / 1.7).abs() < 1e-15);
    }

    #[test]
    fn many_servers_continue_few() {
        for load in [500.0, 950.0, 1000.0, 1100.0, 1e5] {
            let few = erlang_b(1000, load);
            let next = load * few / (1001.0 + load * few);
            assert!((erlang_b(1001, load) / next - 1.0).abs() < 1e-11, "{load}");
        }
    }
}
