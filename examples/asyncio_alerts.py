"""Alerts in an asyncio program: one task pushes readings, another takes the alerts as they come.

python examples/asyncio_alerts.py
"""

from __future__ import annotations

import asyncio

import cqels_py as cqels

ALERTS = """
PREFIX : <http://ex.org/>
SELECT DISTINCT ?sensor
WHERE { STREAM :readings [COUNT 1 PARTITION BY ?sensor] { ?sensor :temperature ?t } FILTER(?t > 30) }
"""


async def read(engine: cqels.Engine) -> None:
    """A sensor; a real one would be awaited."""
    for second, temperature in enumerate([29.5, 31.0, 32.0, 28.0, 33.5]):
        reading = [("http://ex.org/s1", "http://ex.org/temperature", temperature)]
        await engine.apush("http://ex.org/readings", reading, time=second * 1_000_000)
        await asyncio.sleep(0)
    engine.close()


async def main() -> None:
    """Both tasks, until the readings end."""
    engine = cqels.Engine()
    alerts = engine.register(ALERTS, changelog=True)
    sensor = asyncio.create_task(read(engine))
    # At most a hundred results wait; then the sensor does.
    async for alert in alerts.stream(most=100):
        print(alert.time // 1_000_000, "hot" if alert.sign > 0 else "over", alert.bindings["sensor"])
    await sensor


if __name__ == "__main__":
    asyncio.run(main())
