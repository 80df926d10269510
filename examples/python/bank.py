"""The bank of Ciw's first tutorial: three clerks, a customer every five minutes, ten minutes of service. Times in minutes."""

import kendall

bank = kendall.Station("M/M/3", arrival_rate=0.2, service_rate=0.1)
simulated = bank.simulate(500_000, seed=1).waiting.mean
low, high = simulated.interval
print(f"mean wait: {bank.formula().waiting.mean:.3f} min by formula, {simulated:.3f} [{low:.3f}, {high:.3f}] by simulation")
