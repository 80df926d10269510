"""How many servers keep p99 below half a second, and what happens if one of them fails."""

import kendall

RATE, SERVICE_S, OBJECTIVE_S = 40.0, 0.1, 0.5


def p99(servers: int) -> float:
    try:
        station = kendall.Station(f"M/M/{servers}", arrival_rate=RATE, service_time=SERVICE_S)
        return station.formula().response.quantile(0.99)
    except kendall.Unstable:
        return float("inf")


needed = next(servers for servers in range(1, 100) if p99(servers) < OBJECTIVE_S)
print(f"{needed} servers: p99 {p99(needed):.3f} s")
print(f"{needed - 1} after a failure: p99 {p99(needed - 1):.3f} s")
