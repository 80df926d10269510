"""Stations, networks and models against theory."""

import pickle
import signal
import threading
import time
import unittest

import kendall
from available import has


class Stations(unittest.TestCase):
    def test_formula_has_the_numbers_of_the_textbook(self):
        # Ciw's bank: M/M/3 with 0.2 arrivals a minute and service of 10 minutes; Erlang C gives a wait of 4.4444.
        answer = kendall.Station("M/M/3", arrival_rate=0.2, service_rate=0.1).formula()
        self.assertAlmostEqual(answer.waiting.mean, 4 + 4 / 9, places=9)
        self.assertAlmostEqual(answer.utilisation, 2 / 3, places=12)
        self.assertAlmostEqual(answer.in_system, 0.2 * answer.response.mean, places=9)
        self.assertIsNone(answer.waiting.mean.interval)
        self.assertIn("Erlang", answer.source)

    def test_simulation_agrees_within_its_interval_and_repeats(self):
        station = kendall.Station("M/M/3", arrival_rate=0.2, service_rate=0.1)
        answer = station.simulate(400_000, seed=5)
        low, high = answer.waiting.mean.interval
        self.assertLess(low, 4.4444)
        self.assertGreater(high, 4.4444)
        again = station.simulate(400_000, seed=5)
        self.assertEqual(answer.to_dict(), again.to_dict())
        self.assertNotEqual(answer.to_dict(), station.simulate(400_000, seed=6).to_dict())

    def test_errors_have_the_sentences_of_the_command_line(self):
        with self.assertRaisesRegex(kendall.Unstable, "utilisation would be 2.00"):
            kendall.Station("M/M/1", arrival_rate=2, service_rate=1).formula()
        with self.assertRaises(kendall.Unstable):
            kendall.Station("M/M/1", arrival_rate=2, service_rate=1).simulate(10_000)
        with self.assertRaisesRegex(kendall.KendallError, "give service_rate or service_time"):
            kendall.Station("M/M/1", arrival_rate=2)
        with self.assertRaisesRegex(kendall.KendallError, "not in Kendall's notation"):
            kendall.Station("MM1", arrival_rate=2)
        with self.assertRaisesRegex(kendall.KendallError, "arival_rate"):
            kendall.Station("M/M/1", arival_rate=2, service_rate=1)

    def test_samples_are_laws(self):
        measured = [0.1, 0.2, 0.3]
        by_list = kendall.Station("M/G/1", arrival_rate=2, service=measured)
        self.assertAlmostEqual(by_list.offered_utilisation, 0.4)
        # Pollaczek and Khinchine: the wait is λ E[S²] / (2 (1 − ρ)).
        second = sum(each**2 for each in measured) / 3
        self.assertAlmostEqual(by_list.formula().waiting.mean, 2 * second / 2 / 0.6, places=9)
        with self.assertRaisesRegex(kendall.KendallError, "zero or more"):
            kendall.Station("M/G/1", arrival_rate=2, service=[-1.0])

    def test_conditions_and_classes_are_those_of_the_command_line(self):
        station = kendall.Station(
            "M/M/3/10", arrival_rate=30, service_time="100ms", patience=0.5, retry={"after": [1, 2, 4]}
        )
        self.assertEqual(sorted(station.to_dict()["conditions"]), ["patience", "retry"])
        self.assertGreater(station.simulate(20_000).utilisation, 0.9)
        urgent = {"name": "urgent", "share": 0.2, "weight": 10}
        classes = [urgent, {"name": "other", "share": 0.8}]
        answer = kendall.Station("M/M/2/PRP", arrival_rate=12, service_time=0.1, classes=classes).formula()
        self.assertLess(answer.classes[0].response.mean, answer.classes[1].response.mean)
        sharing = kendall.Station("M/M/1/PS", arrival_rate=5, service_time=0.1).formula()
        self.assertIsNone(sharing.p_wait)

    def test_a_delay_is_outside_the_station(self):
        near = kendall.Station("M/M/1", arrival_rate=5, service_time=0.1).formula()
        far = kendall.Station("M/M/1", arrival_rate=5, service_time=0.1, delay="20ms").formula()
        self.assertAlmostEqual(far.response.mean - near.response.mean, 0.02, places=12)

    def test_customers_come_as_arrays(self):
        trace = kendall.Station("M/M/1", arrival_rate=5, service_time=0.1).trace(1_000, seed=2)
        self.assertEqual({len(each) for each in trace.values()}, {1_000})
        for served, waited, responded in zip(trace["service_s"], trace["waiting_s"], trace["response_s"]):
            self.assertAlmostEqual(served + waited, responded, places=9)

    def test_another_rate_keeps_the_rest(self):
        station = kendall.Station("M/D/2", rho=0.5, service_time=0.1)
        self.assertAlmostEqual(station.at(station.arrival_rate * 1.6).offered_utilisation, 0.8)

    def test_answers_read_well(self):
        answer = kendall.Station("M/M/3", arrival_rate=0.2, service_rate=0.1).formula()
        self.assertIn("waiting time, mean    4.44 s", repr(answer))
        self.assertIn("<td>4.44 s</td>", answer._repr_html_())
        copy = pickle.loads(pickle.dumps(kendall.Estimate(1.5, (1.0, 2.0))))
        self.assertEqual((copy, copy.interval), (1.5, (1.0, 2.0)))
        self.assertEqual(f"{copy:.2f}", "1.50")
        with self.assertRaisesRegex(KeyError, "it has"):
            answer.response.quantile(0.123)

    def test_a_plan_says_how_long_to_measure(self):
        plan = kendall.Station("M/M/1", rho=0.8, service_time=0.1).plan(precision=0.05)
        half_as_wide = kendall.Station("M/M/1", rho=0.8, service_time=0.1).plan(precision=0.025)
        self.assertAlmostEqual(half_as_wide.response.requests / plan.response.requests, 4, places=6)


@unittest.skipUnless(has("scipy"), "needs SciPy")
class Laws(unittest.TestCase):
    def test_laws_with_a_letter_are_those_laws(self):
        from scipy import stats

        exponential = kendall.Station("M/G/1", arrival_rate=1, service=stats.expon(scale=0.5))
        self.assertTrue(exponential.notation.startswith("M/M/1"))
        self.assertAlmostEqual(exponential.formula().waiting.mean, 0.5, places=12)
        gaps = kendall.Station("G/M/1", arrivals=stats.gamma(2, scale=0.5), service_time=0.4)
        self.assertTrue(gaps.notation.startswith("E2/M/1"))
        self.assertAlmostEqual(gaps.offered_utilisation, 0.4)

    def test_others_keep_their_mean_and_nearly_their_variance(self):
        from scipy import stats

        law = stats.weibull_min(1.5, scale=0.5)
        station = kendall.Station("M/G/1", arrival_rate=1, service=law)
        self.assertAlmostEqual(station.offered_utilisation, law.mean(), places=9)
        exact = (law.var() + law.mean() ** 2) / 2 / (1 - law.mean())
        self.assertAlmostEqual(station.formula().waiting.mean / exact, 1, delta=1e-3)
        with self.assertRaisesRegex(ValueError, "negative"):
            kendall.Station("M/G/1", arrival_rate=1, service=stats.norm(1, 1))


class Beside(unittest.TestCase):
    """What happens beside a simulation."""

    LONG = 10_000_000_000

    def setUp(self):
        self.station = kendall.Station("M/M/1/PS", arrival_rate=5, service_time=0.1)

    def test_control_c_ends_it_soon(self):
        def interrupt():
            time.sleep(0.5)
            signal.raise_signal(signal.SIGINT)

        # Some shells start programs that ignore it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt):
            self.station.simulate(self.LONG)

    def test_other_threads_run_and_progress_is_told(self):
        counted = 0
        stopped = threading.Event()

        def count():
            nonlocal counted
            while not stopped.is_set():
                counted += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        seen = []

        def notify(customers):
            seen.append(customers)
            if len(seen) == 5:
                raise InterruptedError

        with self.assertRaises(InterruptedError):
            self.station._compiled.simulate([f"--customers={self.LONG}"], notify)
        stopped.set()
        thread.join()
        self.assertGreater(counted, 20)
        self.assertEqual(seen, sorted(seen))


class Others(unittest.TestCase):
    def test_a_network_is_a_dictionary_or_a_text(self):
        description = {
            "station": [
                {"name": "web", "notation": "M/M/2", "arrival-rate": 10, "service-time": 0.1},
                {"name": "db", "service-time": 0.05},
            ],
            "routing": {"web": {"db": 0.5}},
        }
        network = kendall.Network(description)
        formula, simulation = network.formula(), network.simulate(50_000)
        self.assertEqual([node.name for node in formula.nodes], ["web", "db"])
        self.assertAlmostEqual(formula.nodes[1].utilisation, 0.25)
        self.assertAlmostEqual(
            simulation.overall["response"]["mean_s"]["value"] / formula.response_s, 1, delta=0.1
        )
        self.assertIsNone(network.bounds())
        with self.assertRaisesRegex(kendall.KendallError, "station"):
            kendall.Network("[routing]\na.b = 1\n")

    def test_models_have_every_quantity(self):
        found = kendall.model("closed_mva", D=[0.05, 0.03, 0.08], Z=1, N=20)
        self.assertAlmostEqual(found.quantities.throughput, 11.973117242122, places=9)
        self.assertIn("mm1", kendall.models())
        with self.assertRaisesRegex(kendall.KendallError, "no model"):
            kendall.model("nothing")
        with self.assertRaisesRegex(kendall.KendallError, "has no input"):
            kendall.model("mm1", lam=1, mu=2, speed=3)


if __name__ == "__main__":
    unittest.main()
