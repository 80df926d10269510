//! The log of a link during a trial. It is on disk, so that memory stays flat, and becomes a table (`link.parquet`) once the
//! start of the trial is known.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use kendall_archive::series::{Layout, SeriesWriter};
use kendall_files::create;
use kendall_linkmodel::FlowRow;

use crate::error::LinkError;
use crate::frame::Flow;

/// A span of the log, in ns.
pub(crate) const SPAN_NS: i64 = 10_000_000;
/// The numbers of a row, in the order of [`numbers`].
const NUMBERS: usize = 17;
const ROW_BYTES: usize = NUMBERS * 8;

/// The rows of one direction, on disk.
pub(crate) struct Spool {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Spool {
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = BufWriter::new(create(&path)?);
        Ok(Self { path, file })
    }

    /// Adds rows, each with the number of its hop.
    pub(crate) fn write(&mut self, rows: impl Iterator<Item = (usize, FlowRow)>) -> io::Result<()> {
        for (hop, row) in rows {
            for number in numbers(hop, &row) {
                self.file.write_all(&number.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Returns everything that was written, row by row, and removes the file.
    fn into_rows(mut self) -> io::Result<Rows> {
        self.file.flush()?;
        let rows = Rows(BufReader::new(File::open(&self.path)?));
        fs::remove_file(&self.path)?;
        Ok(rows)
    }
}

fn numbers(hop: usize, row: &FlowRow) -> [u64; NUMBERS] {
    [
        row.start_ns as u64,
        hop as u64,
        row.flow,
        row.offered,
        row.offered_bytes,
        row.delivered,
        row.delivered_bytes,
        row.dropped.overflow,
        row.dropped.aqm,
        row.dropped.lost,
        row.dropped.wire_full,
        row.marked,
        row.sent,
        row.wait_min_ns as u64,
        row.wait_max_ns as u64,
        row.wait_sum_ns as u64,
        row.queue_bytes_max,
    ]
}

struct Rows(BufReader<File>);

impl Rows {
    fn next(&mut self) -> io::Result<Option<[u64; NUMBERS]>> {
        let mut bytes = [0; ROW_BYTES];
        match self.0.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut row = [0; NUMBERS];
        for (number, bytes) in row.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
        }
        Ok(Some(row))
    }
}

/// The columns of `link.parquet`.
pub fn layout() -> Layout {
    Layout::new("what one flow did on one hop of one direction of the link in 10 ms; rows without packets are left out")
        .label("direction")
        .label("hop")
        .label("flow")
        .quantity("offered_packets", "packets that came to the hop")
        .quantity("offered_bytes", "their bytes, Ethernet headers included")
        .quantity("delivered_packets", "packets that left the hop, copies included")
        .quantity("delivered_bytes", "their bytes: the goodput")
        .quantity("dropped_overflow_packets", "packets for which the queue had no room")
        .quantity("dropped_aqm_packets", "packets that CoDel dropped")
        .quantity("dropped_lost_packets", "packets that the wire lost")
        .quantity("dropped_wire_full_packets", "packets for which the emulator had no memory")
        .quantity("marked_packets", "packets marked with congestion experienced")
        .quantity("queue_delay_min_s", "shortest wait in the queue of the packets that left it")
        .quantity("queue_delay_mean_s", "mean wait in the queue of the packets that left it")
        .quantity("queue_delay_max_s", "longest wait in the queue of the packets that left it")
        .quantity("queue_bytes", "the most bytes of all flows that a packet found waiting when it came")
}

/// One direction's log and the names of its flows.
pub(crate) struct Logged {
    pub(crate) direction: &'static str,
    pub(crate) spool: Spool,
    pub(crate) names: HashMap<u64, Flow>,
}

/// Writes the logs of both directions as one table, with times from `zero_ns`.
pub(crate) fn write_table(path: &Path, zero_ns: i64, logs: Vec<Logged>) -> Result<(), LinkError> {
    let mut table = SeriesWriter::create(path, layout())?;
    let failed = |source| LinkError::Log { path: path.into(), source };
    let mut ways = Vec::new();
    for Logged { direction, spool, names } in logs {
        let names: HashMap<u64, String> =
            names.into_iter().map(|(number, flow)| (number, flow.to_string())).collect();
        let mut rows = spool.into_rows().map_err(failed)?;
        let head = rows.next().map_err(failed)?;
        ways.push((direction, names, rows, head));
    }
    // Each log is in order except for the spans that a drain leaves open; the two are merged.
    loop {
        let with_rows = ways.iter_mut().filter_map(|way| way.3.map(|row| (row[0] as i64, way)));
        let Some((_, (direction, names, rows, head))) = with_rows.min_by_key(|(start_ns, _)| *start_ns)
        else {
            break;
        };
        let row = head.expect("only those with a row are left");
        let seconds = |ns: u64| (row[12] > 0).then_some(ns as f64 / 1e9);
        let mean_s = (row[12] > 0).then(|| row[15] as f64 / row[12] as f64 / 1e9);
        let counts = row[3..12].iter().map(|&count| Some(count as f64));
        let rest = [seconds(row[13]), mean_s, seconds(row[14]), Some(row[16] as f64)];
        let values: Vec<Option<f64>> = counts.chain(rest).collect();
        let flow = names.get(&row[2]).map_or("others", String::as_str);
        table.append(row[0] as i64 - zero_ns, &[direction, &(row[1] + 1).to_string(), flow], &values)?;
        *head = rows.next().map_err(failed)?;
    }
    Ok(table.finish(0)?)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use kendall_archive::series::Series;

    use super::*;

    #[test]
    fn two_spools_become_one_table_in_order_of_time_counted_from_the_trial() {
        let folder = tempfile::tempdir().unwrap();
        let flow = Flow::Ip {
            protocol: 17,
            from: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 5000),
            to: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 53),
        };
        let spool = |name: &str, starts: &[i64]| {
            let mut spool = Spool::create(folder.path().join(name)).unwrap();
            let row = |&start_ns| {
                let row = FlowRow {
                    start_ns,
                    flow: flow.number(),
                    offered: 3,
                    sent: 2,
                    wait_sum_ns: 5,
                    ..FlowRow::default()
                };
                (0, row)
            };
            spool.write(starts.iter().map(row)).unwrap();
            spool
        };
        let names = HashMap::from([(flow.number(), flow)]);
        let logs = vec![
            Logged { direction: "up", spool: spool("up", &[1_000, 3_000]), names },
            Logged { direction: "down", spool: spool("down", &[2_000]), names: HashMap::new() },
        ];
        let path = folder.path().join("link.parquet");
        write_table(&path, 1_000, logs).unwrap();
        let table = Series::read(&path).unwrap();
        assert_eq!(table.time_ns, [0, 1_000, 2_000]);
        assert_eq!(table.label("direction").collect::<Vec<_>>(), ["up", "down", "up"]);
        assert_eq!(
            table.label("flow").collect::<Vec<_>>(),
            ["udp 10.0.0.1:5000 > 10.0.0.2:53", "others", "udp 10.0.0.1:5000 > 10.0.0.2:53"]
        );
        assert_eq!(table.values("queue_delay_mean_s")[0], Some(2.5e-9));
        assert_eq!(table.values("offered_packets"), [Some(3.0); 3]);
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["link.parquet"]);
    }
}
