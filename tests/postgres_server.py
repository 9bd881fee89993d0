"""A PostgreSQL server of one's own on the loopback interface, for tests and benchmarks.

``FASTPRIV_TEST_POSTGRES`` may name a running server instead, as an address. Otherwise one is made
from the programs that Debian's package postgresql installs, in a temporary folder. Run as a
program, this starts a server, prints its address and waits until its input ends.
"""

import contextlib
import getpass
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


class NoServer(RuntimeError):
    """No server can be started here."""


def programs():
    """Return the folder of initdb and postgres, None if there is none."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += map(Path, sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))
    return next((each for each in folders if (each / "initdb").exists()), None)


class Server:
    """A server that can be killed and started again on the same data."""

    def __init__(self):
        self.programs = programs()
        if self.programs is None:
            raise NoServer("PostgreSQL is not installed: apt-get install postgresql")
        self.folder = Path(tempfile.mkdtemp(prefix="fastpriv-postgres-", dir="/tmp"))
        self.user = "postgres" if os.geteuid() == 0 else getpass.getuser()
        self.process = None
        if os.geteuid() == 0:  # the server refuses to be root
            try:
                shutil.chown(self.folder, "postgres")
            except LookupError:
                raise NoServer("there is no user postgres to run the server as") from None
        made = self._run("initdb", "-D", self.folder / "data", "-A", "trust", "-U", "postgres")
        if made.wait() != 0:
            raise NoServer(f"initdb failed: {made.stderr.read().decode()[-300:]}")
        made.stderr.close()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self.start()

    def _run(self, program, *options):
        command = [str(self.programs / program), *map(str, options)]
        if os.geteuid() == 0:
            command = [
                "setpriv",
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                *command,
            ]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            start_new_session=True,
        )

    def start(self):
        """Start the server and wait until it answers.

        A start that fails is repeated: the port or the shared memory may be in use for a moment.
        """
        import psycopg

        deadline = time.monotonic() + 60.0
        while True:
            if self.process is None or self.process.poll() is not None:
                self.process = self._run(
                    "postgres", "-D", self.folder / "data", "-p", self.port,
                    "-c", "listen_addresses=127.0.0.1",
                    "-c", f"unix_socket_directories={self.folder}", "-c", "max_connections=60",
                )  # fmt: skip
            try:
                psycopg.connect(self.address, connect_timeout=2).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise NoServer(f"the server does not start: {error}") from None
                time.sleep(0.05)
            else:
                return

    def processes(self):
        """Return the ids of the server and of all its processes."""
        command = ["ps", "-eo", "pid=,ppid="]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        rows = [tuple(map(int, line.split())) for line in found.stdout.splitlines()]
        return [pid for pid, parent in rows if self.process.pid in (pid, parent)]

    def kill(self):
        """Kill the server and all its processes, as a power failure would.

        Each of them has a process group of its own. One that is left keeps the shared memory, and
        the next server does not start.
        """
        for each in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.process.wait()

    def close(self):
        """Stop the server and remove its data."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def schema(address, name):
    """Return the address of a new, empty schema."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{address}?options=-csearch_path%3D{name}"


if __name__ == "__main__":
    server = Server()
    try:
        print(server.address, flush=True)
        sys.stdin.read()
    finally:
        server.close()
