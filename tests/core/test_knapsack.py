"""The policy `optimal`: exact against enumeration, bounded beyond, and fast."""

from __future__ import annotations

import random
import time
from itertools import product
from operator import itemgetter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from foveate.core import BudgetError, ConfigError, Instance, Item, Option, Packing, Tier, pack
from foveate.core import packer as packer_module
from foveate.core.lagrangian import solve_bounded
from foveate.core.packer import Columns, columns_of, pack_columns

Choice = tuple[Tier, ...]


def everything(instance: Instance, budget: int) -> list[tuple[float, int, Choice]]:
    """(value, -cost, tiers) of every choice within the budget that the critical guard allows."""
    options = [_options(item) for item in instance.items]
    found: list[tuple[float, int, Choice]] = []
    for chosen in product(*options):
        kept = [(item, option) for item, option in zip(instance.items, chosen, strict=True) if option is not None]
        sections = {item.section for item, _ in kept if item.section is not None}
        cost = instance.fixed_cost + sum(option.cost for _, option in kept)
        cost += sum(instance.header_costs[section] for section in sections)
        if cost <= budget:
            tiers = tuple(Tier.DROP if option is None else option.tier for option in chosen)
            found.append((sum(option.value for _, option in kept), -cost, tiers))
    critical = [i for i, item in enumerate(instance.items) if item.critical and not item.pinned]
    others = [i for i, item in enumerate(instance.items) if not item.critical and not item.pinned]
    safe = [entry for entry in found if all(entry[2][i] >= Tier.COMPRESSED for i in critical)]
    whole = [entry for entry in safe if all(entry[2][i] is Tier.FULL for i in critical)]
    return whole or safe or [entry for entry in found if not any(entry[2][i] for i in others)]


def _options(item: Item) -> list[Option | None]:
    if item.pinned:
        return [option for option in item.options if option.tier is Tier.FULL]
    return [None, *item.options]


def total(instance: Instance, packing: Packing) -> tuple[float, int]:
    """Value and cost of the options that a packing names, added up anew."""
    value, cost, sections = 0.0, instance.fixed_cost, set[int]()
    for index, (item, tier) in enumerate(zip(instance.items, packing.choice, strict=True)):
        if tier is not Tier.DROP:
            option = [o for o in item.options if o.tier is tier][packing.form.get(index, 0)]
            value, cost = value + option.value, cost + option.cost
            sections |= set() if item.section is None else {item.section}
    return value, cost + sum(instance.header_costs[section] for section in sections)


@st.composite
def instances(draw: st.DrawFn, least_cost: int = 0, loose_sections: bool = True) -> Instance:
    sections = draw(st.integers(0, 3))
    count = draw(st.integers(0, 6))
    keys = st.integers(0, sections - 1) if sections else st.none()
    section = draw(st.lists(st.one_of(st.none(), keys) if loose_sections else keys, min_size=count, max_size=count))
    if not loose_sections and sections:
        section = sorted(section, key=lambda key: key or 0)
    items: list[Item] = []
    for key in section:
        full = draw(st.integers(max(1, least_cost), 12))
        value = draw(st.integers(0, 6)) / 4
        options = [Option(Tier.FULL, full, value)]
        for _ in range(draw(st.integers(0, 2))):
            share = draw(st.sampled_from([0.25, 0.5, 1.0]))
            options.append(Option(Tier.COMPRESSED, draw(st.integers(least_cost, full)), value * share))
        if draw(st.integers(0, 2)) == 0:
            options.append(Option(Tier.PLACEHOLDER, draw(st.integers(least_cost, full)), value / 8))
        critical, pinned = draw(st.integers(0, 4)) == 0, draw(st.integers(0, 6)) == 0
        items.append(Item(tuple(options), value, critical=critical, pinned=pinned, section=key))
    headers = tuple(draw(st.integers(0, 4)) for _ in range(sections))
    return Instance(tuple(items), headers, draw(st.integers(0, 3)))


@given(instance=instances(), budget=st.integers(0, 50))
@settings(max_examples=400)
def test_the_dynamic_program_is_exact(instance: Instance, budget: int) -> None:
    choices = everything(instance, budget)
    if not choices:
        with pytest.raises(BudgetError):
            pack(instance, budget, "optimal")
        return
    packing = pack(instance, budget, "optimal")
    assert packing.method == "dp"
    assert packing.value == max(value for value, _, _ in choices)
    assert (packing.value, -packing.cost, packing.choice) in choices
    assert total(instance, packing) == (packing.value, packing.cost)
    assert packing.gap == 0.0
    assert packing.upper_bound == packing.value


@given(instance=instances(least_cost=1, loose_sections=False), budget=st.integers(0, 50))
@settings(max_examples=400)
def test_ties_go_to_fewer_tokens_then_to_the_earlier_item(instance: Instance, budget: int) -> None:
    assume(all(item.score > 0 for item in instance.items if item.critical))  # worth keeping even at no value
    choices = everything(instance, budget)
    if choices:
        packing = pack(instance, budget, "optimal")
        assert (packing.value, -packing.cost, packing.choice) == max(choices)


@given(instance=instances(), budget=st.integers(0, 50))
@settings(max_examples=300)
def test_the_dual_bounds_what_enumeration_finds(instance: Instance, budget: int) -> None:
    choices = everything(instance, budget)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packer_module, "EXACT_CELLS", -1)
        if not choices:
            return
        packing = pack(instance, budget, "optimal")
    best = max(value for value, _, _ in choices)
    assert packing.method == "lagrangian"
    assert packing.upper_bound is not None
    assert packing.gap is not None
    assert (packing.value, -packing.cost, packing.choice) in choices
    assert total(instance, packing) == (packing.value, packing.cost)
    assert packing.value <= best <= packing.upper_bound
    if packing.gap == 0.0:
        assert packing.value == pytest.approx(best, abs=1e-12)


@given(instance=instances(), budget=st.integers(0, 50), cells=st.sampled_from([0, 20, 60]))
@settings(max_examples=200)
def test_a_cut_core_keeps_the_bound_true(instance: Instance, budget: int, cells: int) -> None:
    choices = everything(instance, budget)
    if not choices:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packer_module, "EXACT_CELLS", -1)
        patch.setattr("foveate.core.lagrangian.CORE_CELLS", cells)
        packing = pack(instance, budget, "optimal")
    assert packing.upper_bound is not None
    assert (packing.value, -packing.cost, packing.choice) in choices
    assert packing.value <= max(value for value, _, _ in choices) <= packing.upper_bound


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_any_scale_of_values(scale: float) -> None:
    items = tuple(Item((Option(Tier.FULL, cost, cost * scale),), scale) for cost in (3, 5, 7, 9))
    for cells in (10**6, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packer_module, "EXACT_CELLS", cells)
            packing = pack(Instance(items), 12, "optimal")
        assert packing.cost == 12
        assert packing.value == pytest.approx(12 * scale, rel=1e-12)


def test_a_tiny_value_is_kept_where_there_is_room() -> None:
    items = tuple(Item((Option(Tier.FULL, 3, value),), value) for value in (1.0, 1e-30, 0.0))
    assert pack(Instance(items), 9, "optimal").choice == (Tier.FULL, Tier.FULL, Tier.DROP)


def test_a_header_can_make_the_better_item_the_worse_choice() -> None:
    far = Item((Option(Tier.FULL, 5, 1.0),), 1.0, section=0)
    near = tuple(Item((Option(Tier.FULL, 5, 0.6),), 0.6, section=1) for _ in range(2))
    instance = Instance((far, *near), (4, 1))
    assert pack(instance, 11, "optimal").choice == (Tier.DROP, Tier.FULL, Tier.FULL)
    assert pack(instance, 10, "optimal").choice == (Tier.FULL, Tier.DROP, Tier.DROP)


@pytest.mark.parametrize(
    "item",
    [
        Item((), 0.0),
        Item((Option(Tier.COMPRESSED, 1, 1.0),), 0.0),
        Item((Option(Tier.FULL, 1, 1.0), Option(Tier.FULL, 2, 1.0)), 0.0),
        Item((Option(Tier.FULL, 1, 1.0), Option(Tier.DROP, 0, 0.0)), 0.0),
        Item((Option(Tier.FULL, -1, 1.0),), 0.0),
        Item((Option(Tier.FULL, 1, -1.0),), 0.0),
        Item((Option(Tier.FULL, 1, float("nan")),), 0.0),
        Item((Option(Tier.FULL, 1, 1.0),), 0.0, section=0),
    ],
)
def test_an_impossible_item_is_named(item: Item) -> None:
    good = Item((Option(Tier.FULL, 1, 1.0),), 0.0)
    with pytest.raises(ConfigError, match="item 1: "):
        pack(Instance((good, item)), 5, "optimal")


def large(n: int, sections: int, seed: int, compressed: bool = False) -> Columns:
    """Turns of 8 to 120 tokens, most of little value, as a calibrated scorer sees a long conversation."""
    rng = random.Random(seed)
    items: list[Item] = []
    for index in range(n):
        cost, value = rng.randint(8, 120), rng.random() ** 4
        options = [Option(Tier.FULL, cost, value)]
        if compressed:
            options.append(Option(Tier.COMPRESSED, cost // 2 + 2, value * rng.choice([0.3, 0.6, 0.8])))
        items.append(Item(tuple(options), value, section=index * sections // n if sections else None))
    return columns_of(Instance(tuple(items), (9,) * sections, 3))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("sections", "compressed"), [(0, False), (20, True), (60, False)])
def test_the_gap_is_small_and_true(seed: int, sections: int, compressed: bool) -> None:
    columns = large(400, sections, seed, compressed)
    exact = _packed(columns, 500, 10**9)
    bounded = _packed(columns, 500, -1)
    assert exact.method == "dp"
    assert bounded.method == "lagrangian"
    assert bounded.value >= 0.999 * exact.value
    assert bounded.upper_bound is not None
    assert bounded.upper_bound >= exact.value


def test_everything_fits_without_a_search() -> None:
    columns = large(3000, 40, seed=0)
    packing = pack_columns(columns, 10**6, "optimal")
    assert set(packing.choice) == {Tier.FULL}
    assert packing.gap == 0.0


def test_an_empty_problem_is_bounded_by_nothing() -> None:
    assert solve_bounded([], 100).upper_bound == 0.0
    assert pack(Instance(()), 0, "optimal") == Packing((), 0.0, 0, 0.0, 0.0, "dp")


def _packed(columns: Columns, budget: int, cells: int) -> Packing:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packer_module, "EXACT_CELLS", cells)
        return pack_columns(columns, budget, "optimal")


def _timed(columns: Columns, budget: int, cells: int) -> tuple[Packing, float]:
    start = time.perf_counter()
    packing = _packed(columns, budget, cells)
    return packing, time.perf_counter() - start


@pytest.mark.slow
@pytest.mark.parametrize(("sections", "compressed"), [(0, False), (200, False), (200, True)])
def test_six_thousand_turns_against_the_dynamic_program(
    sections: int, compressed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """6,000 turns, 4,096 tokens: within 0.1 % of the optimum, at least 40 times faster, in one run."""
    columns = large(6000, sections, seed=7, compressed=compressed)
    bounded, bounded_time = min((_timed(columns, 4096, -1) for _ in range(5)), key=itemgetter(1))
    exact, exact_time = _timed(columns, 4096, 10**9)
    with capsys.disabled():
        print(
            f"\n6,000 turns, 4,096 tokens, {sections} sections, compressed {compressed}: "
            f"dp {exact_time:.2f} s, lagrangian {1e3 * bounded_time:.1f} ms ({exact_time / bounded_time:.0f} x), "
            f"reported gap {bounded.gap:.2e}, true gap {(exact.value - bounded.value) / exact.value:.2e}"
        )
    assert bounded.value >= 0.999 * exact.value
    assert bounded.upper_bound is not None
    assert bounded.upper_bound >= exact.value
    assert exact_time >= 40 * bounded_time
