"""A file of open holds, by which the next start of a killed proxy settles them."""

import contextlib
import json
import os
import threading

_LARGE = 1 << 20  # bytes, after which only what is open is kept


class Journal:
    """Has a line for each hold, and for what becomes of it. One process at a time has it.

    It outlasts a kill of the process; for one of the machine, sync each line.
    """

    def __init__(self, path):
        self._path = path
        self._lock = threading.Lock()  # guards the rest
        self._open, self._large = {}, _LARGE
        self._file = open(path, "a+", errors="replace")
        self._file.seek(0)
        for line in self._file:
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # a kill has cut it off
                self._keep(json.loads(line))
        self._file.write("\n")  # whatever follows begins a line

    def open_holds(self):
        with self._lock:
            return list(self._open.values())

    def close(self):
        self._file.close()

    def write(self, record):
        with self._lock:
            self._write_locked(record)

    def note(self, id, stage):
        """Is what the limiter tells of holds."""
        with self._lock:
            if id in self._open:
                self._write_locked({**self._open[id], "local": False, "settled": stage == "settled"})

    def _write_locked(self, record):
        self._keep(record)
        if self._file.tell() > self._large:
            return self._write_anew_locked()
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def _write_anew_locked(self):
        with open(self._path + ".new", "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in self._open.values())
        os.replace(file.name, self._path)
        self._file.close()
        self._file = open(self._path, "a")
        self._large = _LARGE + 2 * self._file.tell()

    def _keep(self, record):
        if record.get("settled"):
            self._open.pop(record["id"], None)
        else:
            self._open[record["id"]] = record
