"""Measured runs, with the command kendall."""

import http.server
import json
import os
import tempfile
import threading
import unittest
from pathlib import Path

import kendall
from available import has, has_command


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


@unittest.skipUnless(has_command(), "the command kendall is not there")
class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.run_of_hold = kendall.experiment(
            {
                "name": "three-rates",
                "question": "How does it grow?",
                "repeats": 1,
                "seed": 1,
                # No trial is repeated, and leaves more files.
                "disturbed-over": "100%",
                "system": {"name": "hold", "workers": 2, "mean": "5ms"},
                "load": {"rate": [80, 160, 240], "duration": "2s"},
            },
            results=cls.folder.name,
        )

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_an_experiment_has_points_and_requests(self):
        run = kendall.read(self.run_of_hold.path)
        self.assertEqual([point.offered_per_s for point in run.report.points], [80, 160, 240])
        self.assertEqual(len(run.files), 3)
        self.assertTrue(run.manifest.kendall)

    def test_it_is_fitted_predicted_checked_and_replayed(self):
        run = self.run_of_hold
        self.assertTrue(run.fit().to_dict())
        self.assertTrue(run.predict(rate=300).to_dict())
        self.assertTrue(run.check().findings)
        self.assertEqual({each.point for each in run.replay()}, {0, 1, 2})

    def test_it_is_replayed_through_another_station(self):
        error = {
            station: [each.fit.relative_error for each in self.run_of_hold.replay(station)]
            for station in ("G/G/2", "G/G/1")
        }
        self.assertEqual(len(error["G/G/2"]), 3)
        # At the highest rate requests wait, and one server would make them wait longer.
        self.assertLess(2 * error["G/G/2"][2], error["G/G/1"][2])
        with self.assertRaisesRegex(kendall.KendallError, "not in Kendall's notation"):
            self.run_of_hold.replay("two servers")

    def test_a_table_is_fitted_as_on_the_command_line(self):
        # M/M/1 with a service time of 10 ms.
        rates = [10, 30, 50, 70, 80]
        table = {"rate": rates, "mean_ms": [10 / (1 - rate / 100) for rate in rates]}
        found = json.dumps(kendall.fit(table).to_dict())
        self.assertIn("servers", found)

    def test_a_server_is_loaded_in_another_process(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/"
            run = kendall.load(url, rate=50, duration="1s", record=Path(self.folder.name) / "load")
        finally:
            server.shutdown()
            server.server_close()
        self.assertEqual(len(run.files), 1)
        self.assertIn("manifest.json", os.listdir(run.path))

    def test_faults_are_exceptions_with_a_sentence(self):
        with self.assertRaisesRegex(kendall.KendallError, "no recorded run"):
            kendall.read(self.folder.name)
        with self.assertRaisesRegex(kendall.KendallError, "rate"):
            kendall.load("http://127.0.0.1:1/", rate="fast", duration="1s")

    @unittest.skipUnless(has("polars"), "needs Polars")
    def test_requests_are_a_lazy_frame(self):
        requests = self.run_of_hold.requests("polars").collect()
        self.assertEqual(requests["trial"].n_unique(), 3)
        self.assertGreater(len(requests), 500)

    @unittest.skipUnless(has("matplotlib") and has("polars"), "needs matplotlib and Polars")
    def test_figures_are_drawn(self):
        import matplotlib

        matplotlib.use("Agg")
        from kendall import plot

        station = kendall.Station("M/M/2", arrival_rate=100, service_time=0.005)
        axes = plot.response(station, self.run_of_hold)
        self.assertEqual(len(axes.get_lines()[0].get_xdata()), 20)
        self.assertEqual(axes.get_ylabel(), "mean response time [s]")
        plot.response(station, quantile=0.99)
        plot.distribution(station.trace(1_000)["response_s"], survival=True)
        self.assertGreater(len(plot.gantt(self.run_of_hold, count=20).patches), 20)


if __name__ == "__main__":
    unittest.main()
