//! The requests that a client sends. The i-th is a pure function of (seed, i).
//!
//! The shape is that of the course's client: ranges of one size, a share of requests that repeat an earlier one,
//! priorities of an exponential law. The numbers differ: that client draws from `rand()` of one C library, so
//! that every request depends on all earlier ones, and it repeats one per cent more often than specified. Here
//! the same seed gives other numbers, and the repeat probability is exact.

use std::net::SocketAddr;

use bytes::Bytes;
use kendall_load::{
    ConnectionKind, Dialog, Dialogs, Request as LoadRequest, RequestClass, Reuse, Route, Wire, Workload,
};
use kendall_station::Law;
use kendall_stats::random::{Purpose, Rng, stream};
use rand::RngExt as _;

use crate::client::Client;
use crate::protocol::{Request, digest};

/// The highest priority that a client sends.
const MAX_PRIORITY: u8 = 16;

/// The parameters of the requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Candidates in each range. The answer is uniform among them.
    pub difficulty: u64,
    /// The probability that a request repeats an earlier one, in per cent. The repeated one is uniform.
    pub repeat_percent: f64,
    /// Priority k has the probability e^(−λ(k−1)) − e^(−λk), and 16 has the remainder: the larger λ, the *fewer*
    /// high priorities. 0 gives all requests priority 1.
    pub priority_lambda: f64,
    /// The start of every range; without it, the start is drawn for each.
    pub start: Option<u64>,
}

/// The reason why parameters are not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ParameterError {
    #[error("difficulty is 0; a range needs at least one candidate")]
    NoCandidates,
    #[error("a range of {difficulty} candidates from {start} does not fit into 64 bits")]
    TooFar { start: u64, difficulty: u64 },
    #[error("repeat-percent is {0}; it must lie between 0 and 100")]
    Repeat(f64),
    #[error("priority-lambda is {0}; it must be 0 (all priorities 1) or more, and finite")]
    Lambda(f64),
}

/// The workload of hash reversal against one server.
#[derive(Clone, Debug)]
pub struct ReverseWorkload {
    server: SocketAddr,
    parameters: Parameters,
    seed: u64,
}

/// The attribute that defines the classes of requests.
enum Classes {
    One,
    Repetition,
    Priority,
}

impl Parameters {
    fn classes(&self) -> Classes {
        if self.priority_lambda > 0.0 {
            Classes::Priority
        } else if self.repeat_percent > 0.0 {
            Classes::Repetition
        } else {
            Classes::One
        }
    }

    /// Checks that the parameters are valid.
    ///
    /// # Errors
    /// Fails on a range that is empty or does not fit into 64 bits, and on invalid probabilities.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let Self { difficulty, repeat_percent, priority_lambda, start } = *self;
        let start = start.unwrap_or(0);
        if difficulty == 0 {
            Err(ParameterError::NoCandidates)
        } else if start.checked_add(difficulty).is_none() {
            Err(ParameterError::TooFar { start, difficulty })
        } else if !(0.0..=100.0).contains(&repeat_percent) {
            Err(ParameterError::Repeat(repeat_percent))
        } else if !(priority_lambda >= 0.0 && priority_lambda.is_finite()) {
            Err(ParameterError::Lambda(priority_lambda))
        } else {
            Ok(())
        }
    }
}

impl ReverseWorkload {
    /// The requests of one seed, for one server.
    ///
    /// # Errors
    /// Fails on [invalid parameters](Parameters::validate).
    pub fn new(server: SocketAddr, parameters: Parameters, seed: u64) -> Result<Self, ParameterError> {
        parameters.validate()?;
        Ok(Self { server, parameters, seed })
    }

    /// The i-th request.
    pub fn reverse_request(&self, index: u64) -> Request {
        let mut rng = self.first_asked(index);
        // The priority is drawn for each request, even where the rest is a repetition.
        let priority = self.draw_priority(&mut stream(self.seed, Purpose::Class, index));
        let Parameters { difficulty, start, .. } = self.parameters;
        let start = start.unwrap_or_else(|| rng.random_range(0..=u64::MAX - difficulty));
        let answer = start + rng.random_range(0..difficulty);
        Request { digest: digest(answer), start, end: start + difficulty, priority }
    }

    /// Follows repetitions back to the first request, and returns the rest of its stream. Each step goes to a
    /// uniform earlier request, so even if all repeat there are about ln(i) steps.
    fn first_asked(&self, mut index: u64) -> Rng {
        loop {
            match self.draw_repeated(index) {
                (rng, None) => return rng,
                (_, Some(earlier)) => index = earlier,
            }
        }
    }

    /// The earlier request that this one repeats, if any, and the rest of its stream.
    fn draw_repeated(&self, index: u64) -> (Rng, Option<u64>) {
        let mut rng = stream(self.seed, Purpose::Request, index);
        let repeats = rng.random::<f64>() * 100.0 < self.parameters.repeat_percent;
        let earlier = (index > 0 && repeats).then(|| rng.random_range(0..index));
        (rng, earlier)
    }

    fn draw_priority(&self, rng: &mut Rng) -> u8 {
        let lambda = self.parameters.priority_lambda;
        if lambda == 0.0 {
            return 1;
        }
        let exponential = Law::exponential_rate(lambda).sample(rng);
        // A cast to u8 saturates, so the far tail counts as the highest priority.
        (exponential as u8).saturating_add(1).min(MAX_PRIORITY)
    }
}

impl Workload for ReverseWorkload {
    fn request(&self, index: u64) -> LoadRequest {
        let request = self.reverse_request(index);
        let class = match self.parameters.classes() {
            Classes::One => 0,
            Classes::Repetition => u32::from(self.draw_repeated(index).1.is_some()),
            Classes::Priority => u32::from(request.priority) - 1,
        };
        LoadRequest::new(class, Bytes::copy_from_slice(&request.encode()))
    }

    /// One class for each priority, which is its weight, if there are priorities; otherwise one for new requests
    /// and one for repeated ones, if there are any.
    fn classes(&self) -> Vec<RequestClass> {
        let class = |name: &str, weight| RequestClass::new(name, weight);
        match self.parameters.classes() {
            Classes::One => vec![class("all", 1.0)],
            Classes::Repetition => vec![class("new", 1.0), class("repeated", 1.0)],
            Classes::Priority => (1..=MAX_PRIORITY)
                .map(|priority| class(&format!("priority {priority}"), f64::from(priority)))
                .collect(),
        }
    }

    fn route(&self) -> Route<'_> {
        let wire = Wire { to: self.server, kind: ConnectionKind::TCP, reuse: Reuse::Close };
        Route::Bytes(wire, self)
    }
}

impl Dialogs for ReverseWorkload {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Client::default())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use kendall_digest::sha256::{Outcome, Targets, scan};
    use kendall_digest::{Engine, Interrupt};

    const PLAIN: Parameters =
        Parameters { difficulty: 1000, repeat_percent: 0.0, priority_lambda: 0.0, start: None };

    fn workload(parameters: Parameters, seed: u64) -> ReverseWorkload {
        ReverseWorkload::new("127.0.0.1:5003".parse().unwrap(), parameters, seed).unwrap()
    }

    /// Whether `count` of `n` is within five standard errors of the probability `p`: a false alarm in 1.7
    /// million.
    fn agrees(count: usize, n: usize, p: f64) -> bool {
        let n = n as f64;
        (count as f64 - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt()
    }

    #[test]
    fn a_request_depends_on_seed_and_index_alone() {
        let parameters = Parameters { repeat_percent: 30.0, priority_lambda: 1.0, ..PLAIN };
        let forwards: Vec<_> = (0..200).map(|i| workload(parameters, 5).request(i)).collect();
        let mut backwards: Vec<_> = (0..200).rev().map(|i| workload(parameters, 5).request(i)).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert_ne!(forwards[0], workload(parameters, 6).request(0));
    }

    #[test]
    fn every_range_holds_its_answer_and_answers_are_uniform() {
        let (n, difficulty) = (5000, 64);
        let workload = workload(Parameters { difficulty, ..PLAIN }, 1);
        let mut counts = vec![0; 4];
        for i in 0..n {
            let request = workload.reverse_request(i as u64);
            assert_eq!(request.candidates(), difficulty);
            let targets = Targets::one(request.digest);
            let found = scan(Engine::Portable, &targets, request.start..request.end, &Interrupt::new());
            let Outcome::Found { value: answer, .. } = found else { panic!("{found:?}") };
            counts[((answer - request.start) / 16) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| agrees(count, n, 0.25)), "{counts:?}");
    }

    #[test]
    fn repeats_have_exactly_the_given_probability() {
        let n = 20_000;
        for percent in [0.0, 20.0, 100.0] {
            let workload = workload(Parameters { repeat_percent: percent, ..PLAIN }, 2);
            let distinct: HashSet<_> = (0..n).map(|i| workload.reverse_request(i as u64).digest).collect();
            // The first cannot repeat; each of the others is new with the same probability.
            assert!(
                agrees(distinct.len() - 1, n - 1, 1.0 - percent / 100.0),
                "{percent}: {}",
                distinct.len()
            );
        }
    }

    /// Of three requests with repeat probability 1/2, the third is new (1/2), repeats the first directly (1/4),
    /// or the second (1/4), which half the time is the first again.
    #[test]
    fn a_repeat_is_of_any_earlier_request_alike() {
        let n = 20_000;
        let (mut first, mut second) = (0, 0);
        for seed in 0..n {
            let workload = workload(Parameters { repeat_percent: 50.0, ..PLAIN }, seed as u64);
            let digests = [0, 1, 2].map(|i| workload.reverse_request(i).digest);
            first += usize::from(digests[2] == digests[0]);
            second += usize::from(digests[2] == digests[1] && digests[1] != digests[0]);
        }
        assert!(agrees(first, n, 0.375) && agrees(second, n, 0.125), "{first} {second}");
    }

    #[test]
    fn priorities_follow_their_law_and_are_drawn_anew_for_repeats() {
        let (n, lambda) = (20_000, 0.5f64);
        let parameters = Parameters { repeat_percent: 100.0, priority_lambda: lambda, ..PLAIN };
        let workload = workload(parameters, 3);
        let mut counts = [0; 17];
        (0..n).for_each(|i| counts[usize::from(workload.reverse_request(i as u64).priority)] += 1);
        assert_eq!(counts[0], 0);
        let tail = |k: usize| (-lambda * (k - 1) as f64).exp();
        for (k, &count) in counts.iter().enumerate().skip(1) {
            let chance = if k == 16 { tail(16) } else { tail(k) - tail(k + 1) };
            assert!(agrees(count, n, chance), "{k}: {count} {chance}");
        }
    }

    #[test]
    fn classes_are_the_priorities_if_there_are_any_or_else_what_is_repeated() {
        let plain = workload(PLAIN, 1);
        let all = RequestClass::new("all", 1.0);
        assert_eq!((plain.classes(), plain.request(4).class), (vec![all], 0));
        let repeating = workload(Parameters { repeat_percent: 40.0, ..PLAIN }, 1);
        let mut asked = HashSet::new();
        for i in 0..200 {
            // Every digest of a range is new when it is first requested, and repeated afterwards.
            let is_new = asked.insert(repeating.reverse_request(i).digest);
            let class = &repeating.classes()[repeating.request(i).class as usize];
            assert_eq!(class.name, if is_new { "new" } else { "repeated" });
        }
        let urgent = workload(Parameters { priority_lambda: 0.3, ..PLAIN }, 1);
        assert_eq!(urgent.classes().len(), 16);
        for i in 0..200 {
            let (request, class) = (urgent.reverse_request(i), urgent.request(i).class);
            let class = &urgent.classes()[class as usize];
            assert_eq!(class.name, format!("priority {}", request.priority));
            assert_eq!(class.weight, f64::from(request.priority));
        }
    }

    #[test]
    fn ranges_lie_where_asked_and_fit_into_64_bits() {
        let fixed = workload(Parameters { start: Some(u64::MAX - 1000), ..PLAIN }, 1);
        assert!((0..50).all(|i| fixed.reverse_request(i).end == u64::MAX));
        let all = workload(Parameters { difficulty: u64::MAX, ..PLAIN }, 1);
        assert_eq!(all.reverse_request(0).candidates(), u64::MAX);
        let starts: HashSet<_> = (0..50).map(|i| workload(PLAIN, 1).reverse_request(i).start).collect();
        assert_eq!(starts.len(), 50);
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let refused = |parameters: Parameters| parameters.validate().unwrap_err().to_string();
        assert!(refused(Parameters { difficulty: 0, ..PLAIN }).contains("difficulty is 0"));
        let far = Parameters { start: Some(u64::MAX), ..PLAIN };
        assert!(refused(far).contains("does not fit into 64 bits"));
        assert!(refused(Parameters { repeat_percent: 100.1, ..PLAIN }).contains("between 0 and 100"));
        assert!(refused(Parameters { repeat_percent: f64::NAN, ..PLAIN }).contains("repeat-percent"));
        assert!(refused(Parameters { priority_lambda: -1.0, ..PLAIN }).contains("priority-lambda is -1"));
    }
}
