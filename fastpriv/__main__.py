"""``python -m fastpriv`` is the ``fastpriv`` command."""

from fastpriv.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
