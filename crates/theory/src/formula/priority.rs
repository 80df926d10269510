//! Classes of different priority with Poisson arrivals: one server with any laws, and several with one exponential law,
//! exactly; several servers with other laws by scaling.

use std::cmp::Ordering;

use kendall_station::{
    Answer, By, Class, ClassAnswer, Discipline, Estimate, Law, Part, QUANTILES, Quantile, Station, Summary,
};

use super::NoFormula;
use super::choice::solve;
use super::classes::{law_of, urgency};
use super::delay::Delay;
use super::erlang::erlang_c;
use super::premises::{exponential_mean, summary};
use super::tails::Distributions;

/// Classes that wait for each other in order of arrival, and their offered load.
struct Rank<'a> {
    classes: Vec<&'a Class>,
    law: Law,
    rate_per_s: f64,
}

/// The offered load of a rank and all above it.
#[derive(Clone, Copy, Default)]
struct Offered {
    load: f64,
    /// Σ λ·E\[S²\] and Σ λ·E\[S³\].
    second: f64,
    third: f64,
}

/// The results for one rank's waiting time; with preemption, for the time out of service.
struct Waits {
    /// The wait of a request that needs no service itself.
    mean_s: f64,
    /// The addition by preemption for each second of service.
    per_service: f64,
    variance_s2: Option<f64>,
    quantiles: Vec<Quantile>,
    /// The response time of the rank, if it is known beyond its mean.
    response: Option<Summary>,
}

impl Waits {
    fn mean(mean_s: f64) -> Self {
        Self { mean_s, per_service: 0.0, variance_s2: None, quantiles: Vec::new(), response: None }
    }
}

fn ranks(station: &Station, rate_per_s: f64) -> Vec<Rank<'_>> {
    let mut classes: Vec<&Class> = station.classes.iter().collect();
    let order = |a: &&Class, b: &&Class| urgency(station, b).total_cmp(&urgency(station, a));
    classes.sort_by(order);
    let groups = classes.chunk_by(|a, b| order(a, b) == Ordering::Equal);
    groups
        .map(|group| {
            let share: f64 = group.iter().map(|class| class.share).sum();
            let part = |class: &&Class| Part {
                probability: class.share / share,
                of: law_of(station, class).clone(),
            };
            let law = match group {
                [one] => law_of(station, one).clone(),
                several => Law::Mixture { parts: several.iter().map(part).collect() },
            };
            Rank { classes: group.to_vec(), law, rate_per_s: share * rate_per_s }
        })
        .collect()
}

/// The station's answer by class, if [`matters`]. Arrivals are Poisson, capacity is unlimited.
pub(super) fn answer(station: &Station, rate_per_s: f64) -> Result<Answer, NoFormula> {
    let ranks = ranks(station, rate_per_s);
    let m = f64::from(station.servers.get());
    let mut sum = Offered::default();
    let mut offered = vec![sum];
    for rank in &ranks {
        sum = Offered {
            load: sum.load + rank.rate_per_s * rank.law.mean_s(),
            second: sum.second + rank.rate_per_s * rank.law.moment(2),
            third: sum.third + rank.rate_per_s * rank.law.moment(3),
        };
        offered.push(sum);
    }
    if sum.load >= m {
        return Err(unstable(station, rate_per_s, &ranks, &offered));
    }
    let service = station.service_overall();
    if service.moment(2).is_infinite() {
        return Err(NoFormula::InfiniteVariance { law: service.name() });
    }
    let common = ranks.iter().map(|rank| exponential_mean(&rank.law)).reduce(|a, b| a.filter(|_| a == b));
    let by = Method { station, ranks: &ranks, offered: &offered };
    let (source, approximate, p_wait, waits) = match common.flatten() {
        Some(mean_s) => by.exponential(mean_s),
        None if station.servers.get() == 1 => by.one_server()?,
        None => by.scaled(rate_per_s, &service)?,
    };
    Ok(dressed(station, &ranks, waits, Overall { rate_per_s, load: sum.load, p_wait, source, approximate }))
}

/// The classes that keep up although the station as a whole does not.
fn unstable(station: &Station, rate_per_s: f64, ranks: &[Rank<'_>], offered: &[Offered]) -> NoFormula {
    let (m, load) = (f64::from(station.servers.get()), offered[ranks.len()].load);
    let names = |keeps_up: bool| -> Vec<String> {
        let of = ranks.iter().zip(&offered[1..]).filter(|(_, sum)| (sum.load < m) == keeps_up);
        of.flat_map(|(rank, _)| rank.classes.iter().map(|class| class.name.clone())).collect()
    };
    NoFormula::UnstableClasses {
        rho: load / m,
        growth_per_s: rate_per_s * (1.0 - m / load),
        keeping: names(true),
        growing: names(false),
    }
}

type MethodResult = (String, Option<String>, f64, Vec<Waits>);

struct Method<'a> {
    station: &'a Station,
    ranks: &'a [Rank<'a>],
    /// Cumulated from above: first that of no rank.
    offered: &'a [Offered],
}

impl Method<'_> {
    fn preempts(&self) -> bool {
        self.station.discipline.preempts()
    }

    /// The share of the servers that the first k ranks leave free.
    fn free(&self, k: usize, servers: f64) -> f64 {
        1.0 - self.offered[k].load / servers
    }

    /// Response and waiting time of the first rank if it interrupts all others, and so is not affected by them.
    fn top(&self) -> Result<(Summary, Summary), NoFormula> {
        let rank = &self.ranks[0];
        let alone = Station {
            arrivals: kendall_station::Arrivals::poisson(rank.rate_per_s),
            service: rank.law.clone(),
            discipline: Discipline::Fifo,
            classes: Vec::new(),
            ..self.station.clone()
        };
        Ok(solve(&alone)?.summaries())
    }

    /// M/M/m with the same service in all classes.
    fn exponential(&self, service_s: f64) -> MethodResult {
        let servers = self.station.servers.get();
        let m = f64::from(servers);
        let p_wait = erlang_c(servers, self.offered[self.ranks.len()].load);
        if self.preempts() {
            let number = |k: usize| {
                let load = self.offered[k].load;
                load + if load > 0.0 { erlang_c(servers, load) * load / (m - load) } else { 0.0 }
            };
            let wait = |k: usize| match self.top() {
                Ok((response, waiting)) if k == 0 => Waits::whole(response, waiting),
                _ => {
                    let rate_per_s = self.ranks[k].rate_per_s;
                    Waits::mean(((number(k + 1) - number(k)) / rate_per_s - service_s).max(0.0))
                }
            };
            let source = "M/M/m with preemptive priorities (Buzen and Bondi 1983)".into();
            return (source, None, p_wait, (0..self.ranks.len()).map(wait).collect());
        }
        let wait = |k: usize| {
            let (above, upto) = (self.free(k, m), self.free(k + 1, m));
            let unit_s = service_s / m;
            let mean_s = p_wait * unit_s / (above * upto);
            // 1 − σ_(k−1)·σ_k without subtracting numbers near 1 from 1.
            let short = above + upto - above * upto;
            let second = 2.0 * p_wait * unit_s * unit_s * short / (upto * upto * above.powi(3));
            let delay = Delay { p_wait, service_s, spare: m * upto };
            let at = |&p: &f64| Quantile { p, value_s: Estimate::exact(delay.waiting_quantile(p)) };
            // Requests of the first rank only wait for each other: exponentially, if at all.
            let quantiles = if k == 0 { QUANTILES.iter().map(at).collect() } else { Vec::new() };
            let response = (k == 0).then(|| {
                let (quantiles, _) = delay.quantiles(&QUANTILES);
                summary(mean_s + service_s, Some(delay.variance_s2() + service_s * service_s), quantiles)
            });
            Waits { variance_s2: Some(second - mean_s * mean_s), quantiles, response, ..Waits::mean(mean_s) }
        };
        let source = "M/M/m with priorities (Cobham 1954; variance by Kella and Yechiali 1985)".into();
        (source, None, p_wait, (0..self.ranks.len()).map(wait).collect())
    }

    /// M/G/1.
    fn one_server(&self) -> Result<MethodResult, NoFormula> {
        let mut waits = self.waits(1.0);
        let source = if self.preempts() {
            let (response, waiting) = self.top()?;
            waits[0] = Waits::whole(response, waiting);
            "M/G/1 with preemptive-resume priorities (White and Christie 1958; Takagi 1991, section 3.4)"
        } else {
            "M/G/1 with priorities (Cobham 1954; variance by Takagi 1991, section 3.2)"
        };
        Ok((source.into(), None, self.offered[self.ranks.len()].load, waits))
    }

    /// The waits at one server that is `speed` times as fast as the laws say.
    fn waits(&self, speed: f64) -> Vec<Waits> {
        let square = speed * speed;
        let all = self.offered[self.ranks.len()];
        let wait = |k: usize| {
            let (above, upto) = (self.free(k, speed), self.free(k + 1, speed));
            let (higher, own) = (self.offered[k], self.offered[k + 1]);
            if self.preempts() {
                // The service itself is stretched by 1/above.
                let per_service = (1.0 - above) / above / speed;
                return Waits { per_service, ..Waits::mean(own.second / square / (2.0 * above * upto)) };
            }
            let mean_s = all.second / square / (2.0 * above * upto);
            let second = all.third / (square * speed) / (3.0 * above * above * upto)
                + all.second * own.second / (square * square) / (2.0 * above * above * upto * upto)
                + all.second * higher.second / (square * square) / (2.0 * above.powi(3) * upto);
            let variance_s2 = Some(second - mean_s * mean_s).filter(|v| v.is_finite());
            Waits { variance_s2, ..Waits::mean(mean_s) }
        };
        (0..self.ranks.len()).map(wait).collect()
    }

    /// M/G/m: the wait in order of arrival, scaled as priorities scale it at one server that is m times as fast.
    fn scaled(&self, rate_per_s: f64, service: &Law) -> Result<MethodResult, NoFormula> {
        let m = f64::from(self.station.servers.get());
        let plain = Station {
            discipline: Discipline::Fifo,
            classes: Vec::new(),
            service: service.clone(),
            ..self.station.clone()
        };
        let plain = solve(&plain)?;
        let fast_s =
            rate_per_s * service.moment(2) / (m * m) / (2.0 * (1.0 - plain.service_s * rate_per_s / m));
        let factor = plain.waiting_s / fast_s;
        let scale = |wait: Waits| Waits {
            per_service: wait.per_service * factor,
            ..Waits::mean(wait.mean_s * factor)
        };
        let mut waits: Vec<Waits> = self.waits(m).into_iter().map(scale).collect();
        if self.preempts() {
            let (response, waiting) = self.top()?;
            waits[0] = Waits::whole(response, waiting);
        }
        let how = "the wait in order of arrival, scaled as priorities scale it at one server of the same capacity; exact where all \
                   classes have the same exponential service and there is no preemption";
        let source = format!("M/G/m with priorities (Bondi and Buzen 1984), from {}", plain.source);
        Ok((source, Some(how.into()), plain.p_wait, waits))
    }
}

impl Waits {
    fn whole(response: Summary, waiting: Summary) -> Self {
        Self {
            variance_s2: waiting.variance_s2,
            quantiles: waiting.quantiles,
            response: Some(response),
            ..Self::mean(waiting.mean_s.value)
        }
    }
}

/// The figures of all classes together.
struct Overall {
    rate_per_s: f64,
    load: f64,
    p_wait: f64,
    source: String,
    approximate: Option<String>,
}

fn dressed(station: &Station, ranks: &[Rank<'_>], waits: Vec<Waits>, overall: Overall) -> Answer {
    let of_class = |class: &Class| {
        let found = ranks.iter().position(|rank| rank.classes.iter().any(|own| std::ptr::eq(*own, class)));
        let (rank, wait) = found.map(|k| (&ranks[k], &waits[k])).expect("each class has a rank");
        let law = law_of(station, class);
        let wait_s = wait.mean_s + wait.per_service * law.mean_s();
        let waiting = summary(wait_s, wait.variance_s2, wait.quantiles.clone());
        // A class that shares its rank with another distribution only has its mean.
        let response = match &wait.response {
            Some(response) if rank.classes.len() == 1 => response.clone(),
            _ => {
                let own = wait.variance_s2.filter(|_| !station.discipline.preempts());
                let service = law.moment(2) - law.mean_s().powi(2);
                summary(wait_s + law.mean_s(), own.map(|v| v + service), Vec::new())
            }
        };
        let throughput_per_s = Estimate::exact(class.share * overall.rate_per_s);
        ClassAnswer { name: class.name.clone(), response, waiting, throughput_per_s }
    };
    let classes: Vec<ClassAnswer> = station.classes.iter().map(of_class).collect();
    let mixed = |of: &dyn Fn(&ClassAnswer) -> &Summary| {
        let parts = || station.classes.iter().zip(&classes).map(|(class, answer)| (class.share, of(answer)));
        let mean_s: f64 = parts().map(|(share, times)| share * times.mean_s.value).sum();
        let second = parts()
            .map(|(share, times)| Some(share * (times.variance_s2? + (times.mean_s.value - mean_s).powi(2))));
        summary(mean_s, second.sum(), Vec::new())
    };
    let (response, waiting) = (mixed(&|answer| &answer.response), mixed(&|answer| &answer.waiting));
    let cost = station.classes.iter().zip(&classes);
    let weighted_s = cost.map(|(class, a)| class.share * class.weight * a.response.mean_s.value).sum();
    Answer {
        by: By::Formula { source: overall.source, approximate: overall.approximate },
        p_wait: Estimate::exact(overall.p_wait),
        throughput_per_s: Estimate::exact(overall.rate_per_s),
        utilisation: Estimate::exact(overall.load / f64::from(station.servers.get())),
        in_system: Estimate::exact(overall.rate_per_s * response.mean_s.value),
        lost: Estimate::exact(0.0),
        weighted_response_s: Some(Estimate::exact(weighted_s)),
        response,
        waiting,
        classes,
    }
}
