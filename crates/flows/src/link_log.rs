//! The rows of `link.parquet` with their labels: what one flow did on one hop in 10 ms.

use kendall_archive::series::Series;

/// A row of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkRow<'a> {
    /// The row's index in the table, for its quantities.
    pub place: usize,
    /// The beginning of the row's 10 ms, in nanoseconds since the start of the log.
    pub time_ns: i64,
    /// "up" is from client to server, "down" back.
    pub direction: &'a str,
    /// The hop, from 1, in the order in which packets of that direction cross the hops.
    pub hop: usize,
    /// Protocol and both addresses: "tcp 10.0.0.2:5012 > 10.0.0.1:40000".
    pub flow: &'a str,
}

impl LinkRow<'_> {
    /// Whether one of its two ends has this port.
    pub fn has_port(&self, port: u16) -> bool {
        self.flow.split(' ').any(|word| word.rsplit_once(':').is_some_and(|(_, end)| end.parse() == Ok(port)))
    }
}

/// More hops than any link has; a number above it is damage.
const MOST_HOPS: usize = 1024;

/// The rows of a log, in its order; those whose hop is not a number are left out.
pub fn rows(log: &Series) -> impl Iterator<Item = LinkRow<'_>> {
    let labels = log.label("direction").zip(log.label("hop")).zip(log.label("flow"));
    labels.enumerate().filter_map(|(place, ((direction, hop), flow))| {
        let hop = hop.parse().ok().filter(|hop| (1..=MOST_HOPS).contains(hop))?;
        Some(LinkRow { place, time_ns: log.time_ns[place], direction, hop, flow })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_that_of_an_end_and_no_part_of_another() {
        let row =
            LinkRow { place: 0, time_ns: 0, direction: "up", hop: 1, flow: "tcp 10.0.0.2:5201 > [::1]:40" };
        assert!(row.has_port(5201) && row.has_port(40));
        assert!(!row.has_port(520) && !row.has_port(201) && !row.has_port(4));
        assert!(!LinkRow { flow: "others", ..row }.has_port(5201));
    }
}
