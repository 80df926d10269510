//! Closed networks with several classes of users, each with its own number, think time and demands.

use super::ClosedError;

/// Users of several classes at single servers.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiClass {
    /// The demand of a request at each station, in seconds: a row for each station, a column for each class.
    pub demands_s: Vec<Vec<f64>>,
    /// The mean think time of each class, in seconds.
    pub think_s: Vec<f64>,
    /// The number of users of each class.
    pub users: Vec<u32>,
}

/// The solution by class.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiClassAnswer {
    /// The name of the method and its reference.
    pub source: &'static str,
    /// Requests per second, by class.
    pub throughput_per_s: Vec<f64>,
    /// Mean response time in seconds, by class; 0 for a class without users.
    pub response_s: Vec<f64>,
    /// The mean number of requests: a row for each station, a column for each class.
    pub queue: Vec<Vec<f64>>,
    /// The busy share of each station.
    pub utilisation: Vec<f64>,
}

/// Most numbers that the exact recursion keeps: 400 MB.
const MOST_NUMBERS: u64 = 50_000_000;

impl MultiClass {
    fn validate(&self) -> Result<(), ClosedError> {
        let classes = self.users.len();
        if self.users.iter().all(|&users| users == 0) {
            return Err(ClosedError::NoUsers);
        }
        if self.think_s.len() != classes {
            let (times, users) = (self.think_s.len(), classes);
            return Err(ClosedError::Shape(format!("{times} think times for {users} classes of users")));
        }
        if let Some(row) = self.demands_s.iter().find(|row| row.len() != classes) {
            let demands = row.len();
            return Err(ClosedError::Shape(format!(
                "a station with {demands} demands for {classes} classes"
            )));
        }
        let times = self.demands_s.iter().flatten().chain(&self.think_s);
        if let Some(&value) = times.clone().find(|time| !(**time >= 0.0 && time.is_finite())) {
            return Err(ClosedError::Time { what: "demand or think time of a class".into(), value });
        }
        let idle = |class: usize| self.think_s[class] + self.demand_s(class) == 0.0 && self.users[class] > 0;
        if (0..classes).any(idle) { Err(ClosedError::NoTime) } else { Ok(()) }
    }

    fn demand_s(&self, class: usize) -> f64 {
        self.demands_s.iter().map(|row| row[class]).sum()
    }

    /// The exact steady state if it is small enough, otherwise [`linearizer`](Self::linearizer).
    ///
    /// # Errors
    /// Fails on invalid or inconsistent numbers.
    pub fn solve(&self) -> Result<MultiClassAnswer, ClosedError> {
        match self.exact() {
            Err(ClosedError::States { .. }) => self.linearizer(),
            exact => exact,
        }
    }

    /// Exact mean value analysis over all smaller populations (Reiser and Lavenberg 1980). Product form requires the same
    /// exponential service of all classes under FIFO, and only the means with shared servers.
    ///
    /// # Errors
    /// Fails on invalid or inconsistent numbers, and if there are too many populations.
    pub fn exact(&self) -> Result<MultiClassAnswer, ClosedError> {
        self.validate()?;
        let (stations, classes) = (self.demands_s.len(), self.users.len());
        let states: f64 = self.users.iter().map(|&users| f64::from(users) + 1.0).product();
        if states * (stations as f64).max(1.0) > MOST_NUMBERS as f64 {
            return Err(ClosedError::States { states, most: MOST_NUMBERS / (stations as u64).max(1) });
        }
        // The distance in memory of populations that differ by one user of a class.
        let mut step = vec![1; classes];
        for class in 1..classes {
            step[class] = step[class - 1] * (self.users[class - 1] as usize + 1);
        }
        let mut total = vec![0.0; states as usize * stations];
        let mut population = vec![0u32; classes];
        let mut throughput = vec![0.0; classes];
        let mut stay = vec![vec![0.0; classes]; stations];
        for state in 1..states as usize {
            advance(&mut population, &self.users);
            for class in (0..classes).filter(|&class| population[class] > 0) {
                let fewer = &total[(state - step[class]) * stations..][..stations];
                for (place, row) in stay.iter_mut().enumerate() {
                    row[class] = self.demands_s[place][class] * (1.0 + fewer[place]);
                }
                let response_s: f64 = stay.iter().map(|row| row[class]).sum();
                throughput[class] = f64::from(population[class]) / (self.think_s[class] + response_s);
            }
            for (place, row) in stay.iter().enumerate() {
                let present = (0..classes).filter(|&class| population[class] > 0);
                total[state * stations + place] = present.map(|class| throughput[class] * row[class]).sum();
            }
        }
        const SOURCE: &str = "exact mean value analysis of several classes (Reiser and Lavenberg 1980)";
        let queue = stay.iter().map(|row| row.iter().zip(&throughput).map(|(stay, x)| stay * x).collect());
        Ok(self.answer(SOURCE, throughput.clone(), queue.collect()))
    }

    /// Schweitzer's approximation (1979), iterated until no number moves by more than 10⁻¹³ of itself.
    ///
    /// # Errors
    /// Fails on invalid or inconsistent numbers.
    pub fn schweitzer(&self) -> Result<MultiClassAnswer, ClosedError> {
        self.validate()?;
        let users: Vec<f64> = self.users.iter().map(|&users| f64::from(users)).collect();
        let even = vec![vec![vec![0.0; users.len()]; users.len()]; self.demands_s.len()];
        let (throughput, queue) = self.core(&users, &even, self.spread(&users));
        Ok(self.answer("Schweitzer's approximate mean value analysis (1979)", throughput, queue))
    }

    /// Linearizer (Chandy and Neuse 1982): Schweitzer's approximation, corrected by how the queues' shares change when one
    /// user leaves.
    ///
    /// # Errors
    /// Fails on invalid or inconsistent numbers.
    pub fn linearizer(&self) -> Result<MultiClassAnswer, ClosedError> {
        self.validate()?;
        let classes = self.users.len();
        let users: Vec<f64> = self.users.iter().map(|&users| f64::from(users)).collect();
        let fewer = |gone: usize| {
            let less =
                |(class, users): (usize, &f64)| if class == gone { (users - 1.0).max(0.0) } else { *users };
            users.iter().enumerate().map(less).collect::<Vec<f64>>()
        };
        let share = |queue: f64, users: f64| if users > 0.0 { queue / users } else { 0.0 };
        // change[k][s][r]: the increase of the share of class s at station k without a user of class r.
        let mut change = vec![vec![vec![0.0; classes]; classes]; self.demands_s.len()];
        let (mut throughput, mut queue) = self.core(&users, &change, self.spread(&users));
        for _ in 0..3 {
            let mut next = change.clone();
            for gone in (0..classes).filter(|&gone| users[gone] > 0.0) {
                let left = fewer(gone);
                let (_, without) = self.core(&left, &change, self.spread(&left));
                for (place, rows) in next.iter_mut().enumerate() {
                    for (class, row) in rows.iter_mut().enumerate() {
                        row[gone] = share(without[place][class], left[class])
                            - share(queue[place][class], users[class]);
                    }
                }
            }
            change = next;
            (throughput, queue) = self.core(&users, &change, queue);
        }
        const SOURCE: &str = "Linearizer, approximate mean value analysis (Chandy and Neuse 1982)";
        Ok(self.answer(SOURCE, throughput, queue))
    }

    /// All users spread evenly over the stations: the start of the iterations.
    fn spread(&self, users: &[f64]) -> Vec<Vec<f64>> {
        let stations = self.demands_s.len() as f64;
        vec![users.iter().map(|users| users / stations).collect(); self.demands_s.len()]
    }

    /// The fixed point in which an arriving request sees the queue of one user less, with each class's share changed as given.
    fn core(
        &self,
        users: &[f64],
        change: &[Vec<Vec<f64>>],
        mut queue: Vec<Vec<f64>>,
    ) -> (Vec<f64>, Vec<Vec<f64>>) {
        let classes = users.len();
        let mut throughput = vec![0.0; classes];
        for _ in 0..100_000 {
            let mut moved: f64 = 0.0;
            let before = queue.clone();
            for class in (0..classes).filter(|&class| users[class] > 0.0) {
                let seen = |place: usize| -> f64 {
                    let of = |other: usize| {
                        if users[other] == 0.0 {
                            return 0.0;
                        }
                        let left = if other == class { users[other] - 1.0 } else { users[other] };
                        left * (before[place][other] / users[other] + change[place][other][class])
                    };
                    (0..classes).map(of).sum::<f64>().max(0.0)
                };
                let stay: Vec<f64> = (0..queue.len())
                    .map(|place| self.demands_s[place][class] * (1.0 + seen(place)))
                    .collect();
                throughput[class] = users[class] / (self.think_s[class] + stay.iter().sum::<f64>());
                for (row, stay) in queue.iter_mut().zip(stay) {
                    let next = throughput[class] * stay;
                    moved = moved.max((next - row[class]).abs() / next.max(f64::MIN_POSITIVE));
                    row[class] = next;
                }
            }
            if moved < 1e-13 {
                break;
            }
        }
        (throughput, queue)
    }

    fn answer(
        &self,
        source: &'static str,
        throughput_per_s: Vec<f64>,
        queue: Vec<Vec<f64>>,
    ) -> MultiClassAnswer {
        let response_s = |(class, &throughput): (usize, &f64)| match throughput {
            0.0 => 0.0,
            throughput => queue.iter().map(|row| row[class]).sum::<f64>() / throughput,
        };
        let busy = |row: &Vec<f64>| row.iter().zip(&throughput_per_s).map(|(demand_s, x)| demand_s * x).sum();
        MultiClassAnswer {
            source,
            response_s: throughput_per_s.iter().enumerate().map(response_s).collect(),
            utilisation: self.demands_s.iter().map(busy).collect(),
            throughput_per_s,
            queue,
        }
    }
}

/// The next population, the first class counting fastest.
fn advance(population: &mut [u32], most: &[u32]) {
    for (users, &most) in population.iter_mut().zip(most) {
        if *users < most {
            *users += 1;
            return;
        }
        *users = 0;
    }
}
