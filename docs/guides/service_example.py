"""A training service that spends from one ledger: one file, the standard library, fastpriv.

Several copies of this program may run, on several machines, with one ledger on PostgreSQL:

    LEDGER=postgresql://accountant@db/privacy python service_example.py

``POST /steps`` with ``{"run": "r1", "first": 0, "steps": 100}`` charges 100 steps of DP-SGD before
they are run. A client that hears nothing repeats the request: the key makes it one charge. ``GET
/budget`` shows what is spent; ``GET /health`` verifies the ledger.
"""

import json
import logging
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fastpriv as fp

BUDGET = {"approximate-dp": (3.0, 1e-6)}
STEP = fp.accounting.PrivacyProfile.gaussian(1.1, 0.01)
COUNTS: dict[str, int] = {}


def count(event, fields):
    """Count events; a real service would pass them to its metrics."""
    COUNTS[event] = COUNTS.get(event, 0) + 1


class Service(BaseHTTPRequestHandler):
    """The routes. The ledger is an attribute of the server."""

    def do_GET(self):
        """Answer questions, which spend nothing."""
        ledger = self.server.ledger
        if self.path == "/budget":
            self.answer(200, {"spent": ledger.spent, "remaining": ledger.remaining})
        elif self.path == "/health":
            try:
                self.answer(200, {"head": ledger.verify(), "events": COUNTS})
            except fp.LedgerError as error:
                self.answer(503, {"error": str(error)})
        else:
            self.answer(404, {"error": "GET /budget or /health, POST /steps"})

    def do_POST(self):
        """Charge steps before they are run."""
        try:
            given = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            run, first, steps = given["run"], given["first"], given["steps"]
        except (KeyError, TypeError, ValueError):
            return self.answer(400, {"error": "give run, first and steps as JSON"})
        try:
            receipt = self.server.ledger.spend(
                STEP,
                count=steps,
                label="dp-sgd",
                key=f"{run}/{first}",
                actor=self.headers.get("X-User", "anonymous"),
                metadata={"run": run, "first": first},
            )
        except fp.BudgetExceeded as error:
            return self.answer(402, {"error": str(error), "remaining": error.remaining})
        except fp.InvalidInput as error:
            return self.answer(400, {"error": str(error)})
        except fp.LedgerError as error:  # nobody knows: the client repeats the request
            return self.answer(503, {"error": str(error)})
        return self.answer(200, json.loads(receipt.to_json()))

    def answer(self, status, content):
        """Send JSON."""
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        """Leave requests to the logger, without their content."""
        logging.getLogger("service").info("%s %s", self.command, self.path.partition("?")[0])


def make(place, port=8000):
    """Return the server; its ledger is made if there is none."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Service)
    server.ledger = fp.accounting.Ledger.open(place, BUDGET)
    return server


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    fp.observe(count)
    make(os.environ["LEDGER"]).serve_forever()
