"""The example application of the page "Run it as a service", on a file and on PostgreSQL."""

import importlib.util
import json
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from postgres_server import NoServer, Server

EXAMPLE = Path(__file__).parents[2] / "docs" / "guides" / "service_example.py"


def ask(server, path, given=None):
    data = None if given is None else json.dumps(given).encode()
    address = f"http://127.0.0.1:{server.server_address[1]}{path}"
    request = urllib.request.Request(address, data, {"X-User": "ada"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.fixture(params=["file", "postgres"])
def place(request, tmp_path):
    if request.param == "file":
        yield str(tmp_path / "ledger")
        return
    pytest.importorskip("psycopg")
    try:
        own = Server()
    except NoServer as error:
        pytest.skip(str(error))
    yield own.address
    own.close()


@pytest.mark.docs
def test_the_example_charges_every_request_once(place):
    spec = importlib.util.spec_from_file_location("service_example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    server = example.make(place, 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        steps = {"run": "r1", "first": 0, "steps": 100}
        status, receipt = ask(server, "/steps", steps)
        assert (status, receipt["count"], receipt["actor"]) == (200, 100, "ada")
        assert ask(server, "/steps", steps) == (200, receipt)
        assert ask(server, "/steps", steps | {"steps": 5})[0] == 400
        assert ask(server, "/steps", {"run": "r1"})[0] == 400
        status, refused = ask(server, "/steps", {"run": "r2", "first": 0, "steps": 10**6})
        assert (status, refused["remaining"] > 2.0) == (402, True)
        assert ask(server, "/nowhere")[0] == 404
        spent = ask(server, "/budget")[1]["spent"]["approximate-dp"]
        assert 0.1 < spent < 1.0
        assert ask(server, "/health")[1]["head"] == receipt["digest"]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        server.ledger.close()
    again = example.make(place, 0)
    assert again.ledger.spent["approximate-dp"] == spent
    again.server_close()
    again.ledger.close()
