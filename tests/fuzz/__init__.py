"""A search for numbers on the wrong side of the truth: ``python -m tests.fuzz --minutes 10``.

Cases are plain JSON: a channel, a prior and a question, all given by numbers. The truth is
computed from those numbers by the references in ``oracles``, with enough digits for the least of
them. An answer of the library must not lie below a level, and must hold the truth in a bracket.
Violations are made smaller and kept in ``corpus.jsonl``, which the tests always run.
"""
