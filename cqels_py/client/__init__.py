"""The client of the service: `Client`, and `AsyncClient` with the same methods for asyncio. It needs httpx.

>>> from cqels_py.client import Client
>>> with Client("http://127.0.0.1:8737") as client:  # doctest: +SKIP
...     client.put_stream("readings", "http://example.org/readings")
...     client.submit("hot", "SELECT ?s ?t { STREAM <http://example.org/readings> [RANGE 5m] { ?s <http://example.org/t> ?t } }")
...     client.send("readings", Path("readings.nq"))
...     for result in client.tail("hot", start=1):
...         print(result["number"], result["bindings"])
"""

from cqels_py.client.asynchronous import AsyncClient
from cqels_py.client.blocking import Client
from cqels_py.client.failures import Unreachable

__all__ = ["AsyncClient", "Client", "Unreachable"]
