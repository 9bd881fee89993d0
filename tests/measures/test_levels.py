import fastpriv as fp
from fastpriv.measures.levels import LEVELS


def test_every_level_belongs_to_a_notion():
    assert LEVELS.keys() <= fp.notions.NOTIONS.keys()


def test_levels_take_what_the_scope_names():
    channel, prior = fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2)
    given = {"mechanism": (channel,), "prior": (channel, prior), "facts": (prior,)}
    for slug, level in LEVELS.items():
        notion = fp.notions.NOTIONS[slug]
        assert level(*given[notion.scope]) == notion.level(channel, prior), slug
