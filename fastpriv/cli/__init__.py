"""The subcommands of ``fastpriv``, one module each: ``add`` its options, ``run`` it."""
