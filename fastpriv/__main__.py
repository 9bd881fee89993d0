"""``python -m fastpriv`` is the ``fastpriv`` command."""

from fastpriv.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
