//! The growth of throughput or speed with users or servers: the laws as formulas.

/// The universal scalability law X = γ·N/(1 + α(N − 1) + βN(N − 1)) (Gunther 2007, section 4.3, equation 4.33 in the
/// three-parameter form of 2008): γ in 1/s is the throughput of one user, α the serial share, β the cost of each pair.
pub fn usl(alpha: f64, beta: f64, gamma_per_s: f64, users: f64) -> f64 {
    gamma_per_s * users / (1.0 + (users - 1.0) * (alpha + beta * users))
}

/// The number of users at which the universal scalability law is largest, √((1 − α)/β) (Gunther 2007, equation 4.35);
/// infinite without β, 1 where one user is best.
pub fn usl_peak(alpha: f64, beta: f64) -> f64 {
    if beta <= 0.0 {
        return if alpha < 1.0 { f64::INFINITY } else { 1.0 };
    }
    ((1.0 - alpha).max(0.0) / beta).sqrt().max(1.0)
}

/// Amdahl's law (1967): the speedup of a task of fixed size on `servers` servers if the share `serial` of it cannot be
/// split.
pub fn amdahl(serial: f64, servers: f64) -> f64 {
    servers / (1.0 + serial * (servers - 1.0))
}

/// Gustafson's law (1988): the growth of the work that `servers` servers do in the same time if they spend the share
/// `serial` of it on a part that cannot be split.
pub fn gustafson(serial: f64, servers: f64) -> f64 {
    servers - serial * (servers - 1.0)
}
