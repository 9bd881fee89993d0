"""Privacy profiles: how delta falls with epsilon, composed and certified.

profile: the class PrivacyProfile. questions: other measures of its curve. text: JSON. relations:
which databases are neighbours. steps/: kinds of private computations; discrete, losses: the losses
of one step. composition: many steps in one direction. engines/: methods that bound delta;
strategy: which one. neighbours, cases: which compositions bound a profile. running: one step more
at the cost of one, for ledgers. repeated: the best of several runs.
"""
