"""Tables of the pages have the numbers of the rows that are committed beside the experiments."""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

from experiments import goals, own_norms
from experiments.paper.points import published_points
from experiments.speed.growth import summary
from experiments.thesis.exits import MODES
from implicit_bias.training import TRAINERS
from tests.pages import ROOT, held, lines, said

DATA = ("mnist", "digits")


@cache
def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(ROOT / "experiments" / "results" / f"{name}.csv")


def rows(name: str) -> pd.DataFrame:
    return _read(name).copy()


def assert_has(page: str, line: list[str]) -> None:
    known = lines(page)
    same = [found for found in known if found[0] == line[0]]
    assert line in known, f"{page} has {same}, and the rows say {line}"


@pytest.mark.parametrize("column", ["printed", "groups", "network", "loss", "units"])
def test_the_chain_of_predictors(column) -> None:
    seen = [rows(f"finite_time_{data}")[column] for data in DATA]
    cells = [f"{x.mean():.1%} ({x.min():.1%} to {x.max():.1%})" for x in seen]
    line = [column, *(re.sub(r"%(?= )", " %", re.sub(r"%(?!\s*\()", "", one)) for one in cells)]
    assert_has("research/finite-time.md", line)


@pytest.mark.parametrize("share", ["0.95", "0.96", "0.97", "0.98", "0.99"])
def test_when_networks_and_their_limits_will_agree(share) -> None:
    cells = []
    for data in DATA:
        frame = rows(f"finite_time_{data}")
        found = frame.loc[frame.separates, f"predicted_{share}"].to_numpy()
        assert not np.isnan(found).any()  # every seed that separates is counted
        middle, least, most = map(_time, (np.median(found), found.min(), found.max()))
        cells.append(f"{middle} ({least} to {most})")
    assert_has("research/finite-time.md", [f"{float(share):.0%}".replace("%", " %"), *cells])


def _time(value: float) -> str:
    if math.isinf(value) or value > 1e7:
        return "beyond 1e7"
    return f"{value:.0f}" if value < 1e5 else f"{value:.2g}"


def test_the_ways_of_decoders_of_next_tokens() -> None:
    page = lines("next-token.md")
    found = [
        [f"{one.context} word{'s' * (one.context > 1)}, {one.contexts} of them", one.network,
         str(one.steps), f"{one.margin_ratio:.3f}", f"{one.limit_error:.0e}"]
        for one in rows("next_token_courses").itertuples()
    ]  # fmt: skip
    assert len([one for one in found if one in page]) == 7
    # What the page says of programs: all of a right status, and none far from cvxpy's.
    programs = rows("next_token")
    assert len(programs) == 200 and set(programs.status) <= {"SOLVED", "INACCURATE"}
    assert (programs.status == "SOLVED").sum() >= 199
    assert programs[["direction", "loss"]].max().max() < 1e-6


def test_the_control_of_plain_norms() -> None:
    norms = {data: rows(f"norms_{data}") for data in ("digits", "mnist")}
    sizes = norms["mnist"][["hidden_units", "contexts"]].drop_duplicates()
    for units, contexts in sizes.itertuples(index=False):
        line = [f"{units}, {contexts}"]
        for frame in norms.values():
            here = frame[(frame.hidden_units == units) & (frame.contexts == contexts)]
            apart = 100 * (here.l2_error - here.gln_error)
            line += [f"{100 * here.gln_error.mean():.1f} %", f"{100 * here.l2_error.mean():.1f} %",
                     f"{apart.min():+.1f} to {apart.max():+.1f}"]  # fmt: skip
        assert_has("research/norms.md", line)


def test_the_local_limits_of_deep_networks() -> None:
    for (gating, depth), here in rows("deep_limits").groupby(["gating", "depth"]):
        best, bound = here.value.min(), here.bound.iloc[0]
        attained = " (attained: the bound is the limit)" * bool(here.tight.any())
        (status, count), *others = here.status.value_counts().items()
        assert not others and here.bound.nunique() == 1
        line = [gating, str(depth), str(len(here)), f"{bound:.6f}{attained}", f"{best:.6f}",
                f"{bound / best:.4f}", str(here.limit.nunique()), f"{count} {status}",
                f"{here.ratio.min():.4f} to {here.ratio.max():.4f}"]  # fmt: skip
        assert_has("deep-networks.md", line)


RELU_DATA = {"random": "random, 30 x 8", "plane": "diamond, 40 x 3", "digits": "60 digits"}


def test_which_local_optima_relu_networks_reach() -> None:
    frame = rows("relu_limits")
    assert (frame.gap[frame.status != "FAILED"] < 1e-8).all()
    for (data, trainer, units, scale, batch), group in frame.groupby(
        ["data", "trainer", "width", "scale", "batch"], sort=False
    ):
        found = group[group.status != "FAILED"]
        above = (found.local / found.best - 1).clip(lower=0).round(8)
        best = (above < 1e-6).sum()
        same = (abs(found.local_50 / found.local - 1) < 1e-6).sum()
        line = [
            RELU_DATA[data], trainer, str(units), f"{scale:g}", str(batch or "all"),
            f"{len(found)} of {len(group)}", _per_cent(found.value / found.local - 1),
            _per_cent(above), str(best), _per_cent(found.machine / found.local), str(same),
        ]  # fmt: skip
        assert line in lines("relu.md"), line


def test_the_best_relu_networks_of_all_widths() -> None:
    for _, one in rows("relu_global").iterrows():
        proved = one.status.removesuffix("_OPTIMUM").lower()
        line = [
            one.data, f"{one.samples} x {one.inputs}", str(one.width), f"{one.network:.5g}",
            f"{one.local:.8g}", one.local_status.removesuffix("_OPTIMUM").lower(),
            f"{one.best:.8g}", proved, f"{one.best / one.bound - 1:.0e}", str(one.units),
            f"{one.support_positive}, {one.support_negative}", f"{one.best_seconds:.2g}",
        ]  # fmt: skip
        assert line in lines("relu.md"), line


def test_times_of_local_limits_of_relu_networks() -> None:
    for _, one in rows("relu_speed").iterrows():
        times = [one.seconds, one.first_seconds, one.next_seconds, one.clarabel_seconds]
        seconds, first, following, clarabel = (
            "" if math.isnan(t) else f"{t:.2g}" if t < 100 else f"{t:.0f}" for t in times
        )
        line = [
            f"{one.data}, {one.samples:.0f} x {one.units:.0f}", seconds, f"{one.programs:.0f}",
            f"{one.lassos:.0f}", f"{one.gap:.0e}", first, following, clarabel,
        ]  # fmt: skip
        assert line in lines("relu.md"), line


def test_times_of_penalised_fits() -> None:
    frame = rows("finite_speed")
    for (n, m, loss, norm, penalty), found in frame.groupby(
        ["n", "coefficients", "loss", "norm", "penalty"], sort=False
    ):
        cells = [f"{n} x {m}", f"{loss}, {norm}, {penalty:g}"]
        for name in ("solve_fit", "cvxpy:CLARABEL", "sklearn"):
            one = found[found.solver.str.startswith(name)]
            cells += _cells_of(one.iloc[0]) if len(one) else ["", ""]
        assert_in_table("finite-limits.md", cells)


def _cells_of(one: pd.Series) -> list[str]:
    if one.outcome != "returned":
        return [one.outcome, ""]
    return [f"{one.cpu_seconds:.2f} s", f"{one.gap:.0e}"]


def assert_in_table(page: str, line: list[str]) -> None:
    assert line in lines(page), line


def test_penalised_fits_of_digits_reach_their_target() -> None:
    frame = rows("finite_speed").query("solver == 'solve_fit' and n == 500 and norm == 'units'")
    assert set(frame.penalty) == {1e-2, 1e-3, 1e-4, 1e-6} and set(frame.coefficients) == {1300}
    assert (frame.gap <= 1e-9).all() and (frame.cpu_seconds < 2).all()


def _per_cent(shares: pd.Series) -> str:
    if shares.empty:
        return "-"
    least, most = (f"{100 * share:.2g}" for share in (shares.min(), shares.max()))
    return least if least == most else f"{least} - {most}"


def test_what_batches_and_constants_change_of_optimisers() -> None:
    for row in rows("optimisers").itertuples():
        line = [
            row.optimiser,
            row.change,
            *(f"{one:.3f}" for one in (row.linf, row.l2, row.spectral)),
        ]
        assert_has("norms-of-optimisers.md", line)


def test_every_trainer_comes_near_the_largest_margin_in_its_own_norm() -> None:
    frame, names = rows("own_norms"), own_norms.TRAINERS.split(",")
    assert (frame.margin_ratio >= 0.95).all() and (frame.certified_ratio <= 1).all()
    for name in names:
        assert set(frame[frame.trainer == name].steps) == set(TRAINERS[name].steps)
    for model, data in own_norms.COMMANDS:
        here = frame[(frame.model == model) & (frame.data == data)].set_index("trainer")
        line = [f"{model}, {here.n_train.iloc[0]} {data}",
                *(f"{here.margin_ratio[name]:.3f}" for name in names),
                f"{here.seconds.iloc[0]:.0f}"]  # fmt: skip
        assert_has("norms-of-optimisers.md", line)


def test_heads_by_descent_beside_their_limits() -> None:
    frame = rows("heads_descent")
    assert (frame.status == "SOLVED").all()
    for one in frame.itertuples():
        line = [
            f"{one.share:g}", str(one.exit), one.kind, _short(f"{one.error_bound:.0e}"),
            *(f"{value:.3f}" for value in (one.accuracy_limit, one.accuracy, one.anytime_limit,
                                           one.anytime, one.agreement)),
            f"{math.degrees(one.angle):.0f}",
            "-" if math.isnan(one.excess) else _short(f"{one.excess:.1e}"),
            "-" if math.isnan(one.margin_ratio) else f"{one.margin_ratio:.3f}",
        ]  # fmt: skip
        assert line in lines("heads.md"), line


def _short(number: str) -> str:
    return number.replace("e-0", "e-")


def test_students_of_all_digits_at_two_temperatures() -> None:
    frame = rows("student_temperatures")
    assert (frame.path_error < 0.007).all() and (frame.n_steps == 10_100).all()
    assert frame.risk_limit.round(3).eq(0.027).all()
    for one in frame.itertuples():
        line = [f"{one.temperature:g}", f"{one.limit_error:.2f}", f"{one.score_cosine:.3f}",
                f"{100 * one.agreement:.1f} %", f"{100 * one.risk:.1f} %"]  # fmt: skip
        assert_has("distillation.md", line)


def test_goals_beside_what_was_measured() -> None:
    for cells in goals.lines(goals.RESULTS):
        assert_has("speed.md", list(cells))


def test_ratios_of_one_run() -> None:
    for one in rows("ratios").itertuples():
        numbers = (f"{value:g}" for value in (one.seconds, one.other_seconds, one.ratio))
        seconds, other_seconds, ratio = numbers
        line = [one.what, one.size, seconds, one.other, other_seconds, ratio]
        assert line in lines("speed.md"), line


def test_threads_of_programs_and_runs() -> None:
    frame = rows("threads").set_index(["what", "beside", "threads"])
    for what in frame.index.unique(level=0):
        line = [what]
        for beside in ("quiet", "busy"):
            one, two = frame.loc[(what, beside, 1)], frame.loc[(what, beside, 2)]
            line += [f"{one.cpu_seconds:g}", f"{two.cpu_seconds:g}", f"{two.ratio:g}"]
        assert_has("speed.md", line)


def test_growths_and_what_is_ahead_of_them() -> None:
    page = lines("growth.md")
    for line in summary(rows("growth")):
        for part in (line[:7], [line[0], *line[7:]]):
            assert part in [one[: len(part)] for one in page], part
            held("growth.md", part)


def test_what_the_defaults_reach() -> None:
    frame = rows("defaults")
    for one in frame[frame.value.notna()].itertuples():
        value = f"{one.value:.4f}" if one.value > 1e-3 else f"{one.value:.0e}"
        line = [one.model, one.network, one.verdict, value, f"{one.seconds:.1f}"]
        known = [[*cells[:3], *cells[4:]] for cells in lines("reaching-the-limit.md")]
        assert line in known, line
        held("reaching-the-limit.md", lines("reaching-the-limit.md")[known.index(line)])
    at = frame[frame.verdict == "AT ITS LIMIT"]
    assert (at.distance <= 0.01).all()


def test_how_far_each_model_was_brought_by_each_trainer() -> None:
    keys = ["model", "data", "n_train", "trainer", "steps"]
    shown = [line for line in lines("trainers.md") if len(line) == 10]
    groups = list(rows("limits").groupby(keys, sort=False))
    assert len(groups) == len(shown) - 2  # the head, and the line below it
    for (model, data, n, trainer, steps), here in groups:
        (line,) = [
            one for one in shown
            if one[0].split(",")[0] == model and one[1].lower().startswith(data)
            and one[1].endswith(f", {n}") and one[2:4] == [trainer, str(steps)]
        ]  # fmt: skip
        assert (here.status == "SOLVED").all() and (here.gap < 1e-8).all()
        assert _as_wide(line[4], here.log_inverse_loss, 3)
        assert _as_wide(line[5], here.margin_ratio, 2)
        assert _as_wide(line[6].removesuffix(" %"), 100 * here.agreement, 3)
        assert _as_wide(line[7], here.kkt_residual, 1)
        assert _as_wide(line[8], here.kkt_complementarity, 1)
        held("trainers.md", line)


def _as_wide(cell: str, values: pd.Series, digits: int) -> bool:
    """True for a cell with the least and the largest value, to so many digits."""
    least, _, most = cell.partition(" - ")
    ends = np.array([float(least), float(most or least)])
    return bool(np.allclose(ends, [values.min(), values.max()], rtol=0.51 * 10 ** (1 - digits)))


def test_every_start_separates_its_data_and_ends_near_its_yardstick() -> None:
    frame = rows("starts")
    page = said("reaching-the-limit.md")
    kinds = frame.groupby(["model", "data", "units"])
    assert f"all of {len(frame):,} starts" in page and frame.separated.all()
    assert (kinds.size() == 35).all() and frame.groupby(["model", "data"]).ngroups == 11
    assert "35 a size" in page and "eleven kinds" in page
    assert frame.margin_ratio.min() > 0.9987 and "above 0.9987" in page
    assert kinds.margin_ratio.median().min() > 0.99997 and "above 0.99997" in page
    deep = frame.bound_ratio[frame.model == "deep-dgn"]
    assert f"{deep.min():.2f} to {deep.max():.2f} (median {deep.median():.2f})" in page


def test_statuses_of_random_programs() -> None:
    frame = rows("fuzz")
    assert len(frame) == 1000 and not frame.verdict.str.contains("wrong").any()
    table = pd.crosstab(frame.twist, frame.status)
    for twist, counts in table.iterrows():
        assert_has("speed.md", [str(twist), *map(str, counts)])


def test_solver_beside_cvxpy() -> None:
    frame = rows("speed").set_index(["hidden_units", "contexts", "n_train", "solver"])
    for sizes in ((10, 2, 500), (20, 2, 1000)):
        ours, scs = (frame.seconds[(*sizes, name)] for name in ("interior-point", "cvxpy:SCS"))
        (line,) = [one for one in lines("speed.md") if one[0] == str(sizes).replace("'", "")
                   and len(one) == 5]  # fmt: skip
        assert line[1:3] == [f"{ours:.2g} s", f"{scs:.1f} s, {scs / ours:.0f} x"]
        held("speed.md", line[:3])


def _spread(mean: float, error: float, digits: int) -> str:
    return f"{mean:.{digits}f} +- {error:.{digits}f}"


def test_the_experiments_on_distillation_again() -> None:
    page = "research/distillation.md"
    for one in rows("distillation_geometry").itertuples():
        risk = "below 0.0001" if one.risk < 1e-4 else _spread(one.risk, one.risk_error, 4)
        bounds = (f"{one.bound_sharper:.4f}", f"{one.bound_printed:.4f}", f"{one.corollary:.4f}")
        assert_has(page, [f"{one.kappa:g}", risk, *bounds])
    digits, mnist = (rows(f"distillation_bias_{name}").set_index("delta") for name in DATA[::-1])
    for delta in digits.index.intersection(mnist.index):
        cells = [
            _spread(frame.risk[delta], frame.risk_error[delta], 3) for frame in (digits, mnist)
        ]
        assert [f"{delta:g}", *cells] in lines(page), (delta, cells)
    for one in rows("distillation_monotonicity").rename(columns={"index": "share"}).itertuples():
        cells = [_spread(one.share, one.index_error, 3), _spread(one.risk, one.risk_error, 4)]
        assert_has(page, [one.learner, *cells])


HALF_SPACES, DEEP_GATED = "research/half-space-features.md", "research/deep-gated.md"


def test_gates_of_dlgns_on_the_circle() -> None:
    frame = rows("circle")
    counts = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
    for experts in ("linear", "constant"):
        for loss, name in (("0.01", "steps_to_loss"), ("0.005", "steps_to_half_of_it")):
            cells = []
            for gates in ("trained", "frozen"):
                here = frame[(frame.experts == experts) & (frame.gates == gates)]
                steps, reached = here[name].dropna(), here[name].count()
                cells.append(f"{steps.min():.0f} to {steps.max():.0f}")
                if reached < len(here):
                    cells[-1] += f" in {counts[reached]} seeds, not in {here.steps.iloc[0]:,}"
            assert_has(HALF_SPACES, [f"{experts} experts: steps to a loss of {loss}", *cells])
    pairs = frame[frame.experts != "relu"].pivot(
        index=["experts", "seed"], columns="gates", values="steps_to_loss"
    )
    assert len(pairs) == 10 and (pairs.trained < pairs.frozen.fillna(math.inf)).all()
    trained, frozen = (frame[frame.gates == name] for name in ("trained", "frozen"))
    late = [(frozen[name].fillna(math.inf) > 2000).sum()
            for name in ("steps_to_loss", "steps_to_half_of_it")]  # fmt: skip
    assert late == [3, 5]
    assert "in three of ten networks to 0.01, in five of ten to 0.005" in said(HALF_SPACES)
    for name, here, digits in (("trained", trained, 2), ("frozen", frozen, 0)):
        spread = f"{here.loss_hard.min():.{digits}f} to {here.loss_hard.max():.{digits}f}"
        (line,) = [one for one in lines(HALF_SPACES) if one[0].startswith("loss at the end")]
        assert line[1 if name == "trained" else 2].startswith(spread), spread
        held(HALF_SPACES, [spread])
    relu = frame[frame.experts == "relu"].steps_to_loss
    assert f"({relu.min():.0f} to {relu.max():.0f} steps)" in said(HALF_SPACES)


def test_where_open_paths_and_kernels_of_the_circle_go() -> None:
    frame = rows("circle")
    moments, page = ("start", "half", "end"), said(HALF_SPACES)
    gained = {}
    for experts, title in (("relu", "ReLU"), ("constant", "DLGN, constant experts"),
                           ("linear", "DLGN, linear experts")):  # fmt: skip
        here = frame[(frame.experts == experts) & (frame.gates != "frozen")]
        paths = {name: here[f"log2_easy_hard_{name}"] for name in moments}
        up = {name: int((paths[name] > paths["start"]).sum()) for name in ("half", "end")}
        gained[experts] = up
        cells = [f"{paths['start'].mean():.2f}"]
        for name in ("half", "end"):
            cells += [f"{paths[name].mean():.2f}", f"{up[name]} of {len(here)}"]
        cells += [f"{here[f'log2_kernel_{name}'].mean():.2f}" for name in moments]
        assert_has(HALF_SPACES, [title, *cells])
    dlgns = frame[(frame.experts != "relu") & (frame.gates == "trained")]
    assert gained["constant"]["half"] + gained["linear"]["half"] == 9
    assert gained["constant"]["end"] + gained["linear"]["end"] == 4
    move = (dlgns.log2_easy_hard_half - dlgns.log2_easy_hard_start).mean()
    assert f"a factor of about {2**move:.1f} on average" in page
    assert (dlgns.log2_kernel_end < 0).all() and "in ten seeds of ten" in page
    # Learned first: what is left of 0.25 on either half when the mean is 0.125.
    clear = (frame.easy_at_half < 0.014) & (frame.hard_at_half > 0.23)
    assert (len(frame), clear.sum()) == (25, 24)
    assert "the easy half has at most 0.014 left in 24 of 25" in page
    assert "and the hard half 0.23 of its 0.25 or more" in page
    (other,) = frame[~clear].itertuples()
    assert other.experts == "relu"
    assert f"({other.easy_at_half:.2f} and {other.hard_at_half:.2f} in one ReLU network)" in page
    pairs = frame[frame.experts != "relu"].pivot(
        index=["seed", "experts"], columns="gates", values="artefact_at_end"
    )
    more = pairs[pairs.frozen > pairs.trained]
    assert (len(pairs), len(more)) == (10, 8) and set(pairs.index.difference(more.index)) == {
        (0, "constant"), (0, "linear")
    }  # fmt: skip
    trained = f"{pairs.trained.min():.2f} to {pairs.trained.max():.2f} when trained ones do"
    assert f"is {more.frozen.min():.2f} to {more.frozen.max():.2f} as a root mean square" in page
    assert trained in page and f"the exception: {pairs.frozen[0].mean():.2f} behind" in page
    left = frame[frame.experts != "relu"].pivot(
        index=["seed", "experts"], columns="gates", values="artefact_last"
    )
    assert (left.frozen > left.trained).all() and "in ten pairs of ten more than the" in page
    for side, words in (("frozen", "is left behind frozen gates"), ("trained", "of trained ones")):
        assert f"{left[side].min():.3f} to {left[side].max():.3f} {words}" in page
    first = frame[(frame.seed == 0) & (frame.gates != "frozen")]
    assert (first.log2_easy_hard_start < 0).all()  # "in which the hard half has more open paths"
    constant = dlgns[dlgns.experts == "constant"]
    shares = [f"{100 * constant[f'facing_up_{name}'].mean():.0f} %" for name in moments]
    assert f"{shares[0]} at the start, {shares[1]} and {shares[2]} at both moments" in page


def test_kernels_of_simple_and_complex_classes() -> None:
    frame = rows("simple_half_kernels_mnist")
    own, others = ([f"{k}_{k}" for k in part] for part in (range(5), range(5, 10)))
    frame["log2"] = np.log2(frame[own].mean(axis=1) / frame[others].mean(axis=1))
    for (kernel, network, simple), here in frame.groupby(["kernel", "network", "simple"]):
        cells = []
        for moment in ("start", "middle", "end"):
            one = here.loc[here.moment == moment, "log2"]
            assert len(one) == 3
            cells.append(f"{one.mean():.2f} ({one.min():.2f} to {one.max():.2f})")
        assert_has(HALF_SPACES, [f"{kernel}, {network}", simple, *cells])
        if network == "dlgn-pwc" or simple == "0-4":
            assert (here.log2 > 0).all()  # "brighter on the diagonal", in every run
        if simple == "0-4":  # the pictures
            assert set(here.groupby("moment")[own + others].mean().idxmax(axis=1)) == {"1_1"}
    middle = frame[frame.moment == "middle"].step
    assert f"learned (steps {middle.min()} to {middle.max()})" in said(HALF_SPACES)
    curves = rows("simple_half_curves_mnist").query("step > 0")
    ratios = [curves[f"{name}_simple"] / curves[f"{name}_complex"] for name in ("paths", "ntk")]
    assert all(one.min() < 0.95 < 1.05 < one.max() for one in ratios)  # "and either way"
    most = [100 * max(one.max() - 1, 1 - one.min()) for one in ratios]
    assert f"differ by up to {most[0]:.0f} and {most[1]:.0f} %" in said(HALF_SPACES)


def test_the_region_that_jumps() -> None:
    frame = rows("path_regions")
    assert set(frame.square[frame.eps > 0]) == {0.5} and set(frame.square[frame.eps < 0]) == {0.25}


def test_networks_with_soft_gates() -> None:
    frame = rows("soft_gates_mnist")
    last = frame[frame.epoch == frame.epoch.max()]
    for init, of_init in last.groupby("init"):
        for kind, here in of_init.groupby("kind"):
            wrong = 100 * here.error
            cells = [f"{wrong.mean():.1f} ({wrong.min():.1f} to {wrong.max():.1f})"]
            for name in ("nu_k", "nu_m", "nu_a"):
                value = here[name].mean()
                cells.append("-" if math.isnan(value) else f"{value:,.0f}")
            (line,) = [one for one in lines(DEEP_GATED) if one[:2] == [kind, init]]
            assert line[2:] == cells, (kind, init, cells)
            held(DEEP_GATED, line)
    runs = last.set_index(["init", "seed", "kind"]).unstack()
    assert len(runs) == 10

    def better(one: str, other: str, init: str | None = None, of: str = "error") -> int:
        found = runs[of] if init is None else runs[of].loc[init]
        return int((found[one] < found[other]).sum())

    for kind in ("soft-galu", "soft-relu", "relu"):
        assert better(kind, "galu") == 10
    assert better("relu", "own start") == better("relu", "learned gates") == 10
    assert better("learned gates", "galu", "kaiming") == 5
    assert better("learned gates", "galu", "sign") == 4
    assert 0.45 < runs.error.loc["kaiming"].mean()["learned gates"] / runs.error.loc[
        "kaiming"].galu.mean() < 0.55  # fmt: skip
    assert better("gates only", "learned gates", "kaiming") == 5
    for kind in ("soft-galu", "soft-relu", "relu"):
        assert better(kind, "own start", of="nu_k") == 10
    assert better("learned gates", "galu", of="nu_k") == 10
    assert better("galu", "relu", "sign", "nu_k") == 4
    first = frame[frame.epoch == 0].set_index(["init", "seed", "kind"]).unstack()
    # Squared scores, which know nothing of the labels: 2 loss = <f^2> + 1.
    large = np.sqrt(2 * first.loss.loc["sign"].mean() - 1)
    assert round(large.min()) == 3 and round(large.max()) == 4  # "three to four times the labels"
    assert (runs.nu_k < first.nu_k)[["galu", "own start", "learned gates"]].all(axis=None)
    share = runs.nu_a / first.nu_a
    assert 0.18 < share["soft-galu"]["kaiming"].mean() < 0.22
    assert f"to {share['soft-galu']['sign'].mean():.2f} on average" in said(DEEP_GATED)
    for kind in ("soft-galu", "gates only"):
        assert (share[kind]["sign"] < 1).sum() == 4
    assert share["gates only"]["sign"].mean() > 1
    traces = (runs.trace_a / first.trace_a)[["soft-galu", "gates only", "ours"]]
    assert (share[traces.columns] > traces).all(axis=None)


def test_random_labels_and_pixels() -> None:
    frame = rows("random_labels_mnist")
    for (data, network), here in frame.groupby(["data", "network"]):
        last = here[here.epoch == here.epoch.max()]
        ended = {name: 100 * last[name] for name in ("train", "test")}
        cells = [f"{x.mean():.1f} ({x.min():.1f} to {x.max():.1f})" for x in ended.values()]
        half = here[here.train >= 0.9].groupby("seed").epoch.min()
        reached = "-" if len(half) < last.seed.nunique() else f"{half.min()} to {half.max()}"
        assert_has(DEEP_GATED, [f"{data}, {network}", reached, *cells])


def test_entries_and_curves_of_gram_matrices() -> None:
    for one in rows("gram_entries").itertuples():
        cells = [f"{one.diagonal:.3f} ({one.diagonal_error:.3f})", f"{one.ideal_diagonal:.0f}",
                 f"{one.other:.4f} ({one.other_error:.4f})", f"{one.ideal_other:.4g}"]  # fmt: skip
        assert_has(DEEP_GATED, [str(one.depth), *cells])
    errors = rows("gram_errors").query("gates == 'random' and how == 'trained'")
    left = errors.set_index(["width", "step", "depth"]).left
    page = said(DEEP_GATED)
    assert f"({left[500, 15, 20]:.2f} against {left[500, 15, 12]:.2f} with 12)" in page
    assert f"({left[25, 1000, 20]:.2f} against {left[25, 1000, 8]:.3f} with 8)" in page
    curves = rows("gram_linear")
    for depth, here in curves.groupby("depth"):
        ends = here.set_index("step").loc[[1, here.step.max()]]
        cells = [f"{ends.left.iloc[0]:.3f} ({ends.left_least.iloc[0]:.2f} to "
                 f"{ends.left_most.iloc[0]:.2f})", f"{ends.left.iloc[1]:.1e}",
                 f"{ends.kernel.iloc[1] / here.kernel.iloc[0]:.2f}"]  # fmt: skip
        assert_has(DEEP_GATED, [f"d = {depth}", *cells])


def test_the_first_step_and_gates_of_other_networks() -> None:
    for one in rows("first_step").itertuples():
        share = f"{one.share:.3f} ({one.share_least:.2f} to {one.share_largest:.2f})"
        assert_has("research/kernels.md", [
            str(one.depth), f"{one.predicted_variance:.3g}", f"{one.variance:.3g}",
            f"{one.printed_variance:g}", share, f"{one.predicted_share:.3f}", f"{one.growth:.2f}",
        ])  # fmt: skip
    for depth, here in rows("galu").groupby("depth"):
        galu, relu = (here[here.kind == kind].mean(numeric_only=True) for kind in ("galu", "relu"))
        cells = [f"{galu.spread:.1f}", f"{relu.spread:.1f}"]
        cells += [f"{one[name]:.2f}" for name in ("left_by_law", "left") for one in (galu, relu)]
        assert [str(depth), *cells] in lines("research/kernels.md"), (depth, cells)


def test_what_is_said_of_gates_of_other_networks() -> None:
    page = said("research/kernels.md")
    frame = rows("galu")
    pairs = frame.pivot(index=["depth", "seed"], columns="kind", values=["spread", "left"])
    better = (pairs.spread.galu > pairs.spread.relu) & (pairs.left.galu < pairs.left.relu)
    assert better.all() and f"at every depth, in all {len(pairs)} pairs" in page
    of_relu = frame[frame.kind == "relu"].groupby("depth").mean(numeric_only=True)
    assert np.ptp(of_relu.spread) < 0.2 and (np.diff(of_relu.left) < 0).all()  # does not spread
    sooner = frame.left < frame.left_by_law
    assert (sooner == (frame.kind == "galu")).all()  # than their constant kernels
    assert set(frame.overlap_ratio) == {1} and "was 1 in every draw" in page


def test_how_often_bars_of_unfinished_runs_hold() -> None:
    frame = rows("coverage")
    named = {"gln": "GLN", "frelu": "frozen ReLU", "deep-linear": "deep linear", "linear": "linear"}
    estimated = frame[frame.status == "ESTIMATED"]
    kinds = estimated.model.str.replace(r"-\d+$", "", regex=True)
    for model, here in estimated.groupby(kinds):
        (line,) = [one for one in lines("reaching-the-limit.md")
                   if one[0].split(",")[0] == named[model] and len(one) == 5]  # fmt: skip
        bars = [100 * here.covered[here.times == times].mean() for times in (10, 20)]
        assert line[1:3] == [str(len(here) // 2), f"{bars[0]:.0f} %, {bars[1]:.0f} %"]
        held("reaching-the-limit.md", line[:3])


GLN_PAPER = "research/gln-paper.md"
PROGRAMS = {
    "svm-gln": "SVM-GLN", "svm-gln-printed": "SVM-GLN, as published", "svm-l2": "SVM-L2",
    "svm-l2-printed": "SVM-L2, as published", "svm-hl": "SVM-HL", "svm-lc": "SVM-LC",
    "svm-rc": "SVM-RC",
}  # fmt: skip
TRAINED = {"constant": "as published", "annealed": "to the limit", "smoothed": "to the limit"}
MEASURED = ["error_program", "error_network", "inconsistency"]


def sizes_in_both(ours: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Means over seeds of every size with a result here and in print; those in print end in _."""
    size = [*by, "hidden_units", "n_train"]
    # A network that its steps threw off says nothing of the others.
    known = ours[ours.error_network < 0.4].dropna(subset=["error_program"])
    mine = known.groupby(["program", "trainer", *size])[MEASURED].mean().reset_index()
    mine["base"] = mine.program.str.removesuffix("-printed")
    printed = published_points("gln" if by[0] == "cutoffs" else "relu")
    printed = printed.dropna(subset=["error_program"]).rename(columns={"program": "base"})
    theirs = printed.groupby(["base", *size])[MEASURED].mean().reset_index()
    return mine.merge(theirs, on=["base", *size], suffixes=("", "_"))


def lines_beside_print(ours: pd.DataFrame, by: list[str]) -> list[list[str]]:
    found = []
    for key, own in sizes_in_both(ours, by).groupby(["program", *by, "trainer"]):
        cells = []
        for name in MEASURED:
            print_ = f"{100 * own[name + '_'].mean():.1f}" if key[-1] == "constant" else ""
            cells += [f"{100 * own[name].mean():.1f}", print_]
        found.append([PROGRAMS[key[0]], *(str(one) for one in key[1:-1]), TRAINED[key[-1]], *cells])
    return found


def lines_at_the_limit(relu: pd.DataFrame) -> list[list[str]]:
    """ReLU networks brought to the limit, by steps that have no momentum, where lines above are."""
    size = ["program", "hidden_units", "n_train"]
    limit = relu[relu.trainer == "smoothed"].groupby(size)[MEASURED].mean()
    found = []
    recipe = sizes_in_both(relu[relu.trainer == "constant"], ["momentum"])
    for (program, _), own in recipe.groupby(["program", "momentum"]):
        values = 100 * limit.loc[pd.MultiIndex.from_frame(own[size])]
        assert len(values) == len(own) and not values.isna().any().any()
        cells = [cell for one in values.mean() for cell in (f"{one:.1f}", "")]
        found.append([PROGRAMS[program], "the same sizes", "to the limit", *cells])
    return found


def lines_without_solution(relu: pd.DataFrame) -> list[list[str]]:
    """Networks by the published recipe whose machine has no solution, by hidden units."""
    sources = (
        relu[relu.trainer == "constant"],
        published_points("relu").query("hidden_units < 101"),
    )
    found = []
    for program in ("svm-hl", "svm-lc"):
        for source, own in zip(("", ", in print"), sources, strict=True):
            of = own[own.program == program].groupby("hidden_units").error_program
            cells = [f"{one.isna().sum()} of {len(one)}" for _, one in of]
            found.append([PROGRAMS[program] + source, *cells])
    return found


def test_figures_of_gated_linear_networks_beside_print() -> None:
    points = rows("paper_gln_4_mnist")
    assert set(points.status) <= {"SOLVED", "INACCURATE"}
    assert points.gap[points.status == "SOLVED"].max() < 1e-8
    deep = points[points.program != "shallow"]
    sizes = deep.groupby(["program", "trainer", "cutoffs", "contexts", "hidden_units", "n_train"])
    assert len(sizes) == 48 * 5 and (sizes.seed.nunique() == 3).all()
    for line in lines_beside_print(deep.astype({"contexts": int}), ["cutoffs", "contexts"]):
        assert_has(GLN_PAPER, line)


def test_figures_of_relu_networks_beside_print() -> None:
    points = rows("paper_relu_5_mnist")
    relu = points[points.contexts.isna()]
    for trainer, each in (("constant", 2), ("smoothed", 1)):
        sizes = relu[relu.trainer == trainer].groupby(["program", "hidden_units", "n_train"])
        assert len(sizes) == 12 * 4 and (sizes.seed.count() == 3 * each).all()
    solved = relu[relu.status == "SOLVED"]
    assert set(relu.status) == {"SOLVED", "NOT_SEPARABLE"} and solved.gap.max() < 1e-8
    shown = [*lines_beside_print(relu[relu.trainer == "constant"], ["momentum"]),
             *lines_at_the_limit(relu), *lines_without_solution(relu)]  # fmt: skip
    for line in shown:
        assert_has(GLN_PAPER, line)


@pytest.mark.parametrize("norm", ["l2", "spectral", "nuclear", "linf", "l1"])
def test_the_seconds_of_programs_in_every_norm(norm) -> None:
    table = rows("speed_norms").set_index(["norm", "n", "solver"])
    assert table.machine.nunique() == 1

    def cell(n: int, solver: str) -> str:
        if (norm, n, solver) not in table.index:
            return ""
        here = table.loc[(norm, n, solver)]
        if here.outcome == "over the limit":
            return f"over {here.cpu_seconds:.0f}"
        return f"{here.cpu_seconds:.2g}, {here.gap:.0e}"

    ours = [cell(n, "interior-point") for n in (120, 500, 5000)]
    peers = ("highs", "cvxpy:CLARABEL", "cvxpy:SCS", "liblinear")
    assert_has("norms.md", [norm, *ours, *(cell(500, peer) for peer in peers)])
    if norm != "l2":
        units = table.loc[(norm, 500, "interior-point")].l2_units
        assert f"{norm} {units:.1f}" in said("norms.md")


def test_the_seconds_of_images_in_every_norm() -> None:
    table = rows("norms_of_images")
    assert set(table.outcome) == {"SOLVED"} and table.gap.max() < 1e-8
    assert (table[table.n == 500].groupby("units").norm.nunique() == 5).all()
    assert table.n.nunique() == 4 and set(table.units) == {0, 20}
    for row in table.itertuples():
        of = f"{row.units} units" if row.units else f"{row.classes} classes"
        cells = [f"{row.cpu_seconds:.3g}", f"{row.gap:.0e}", f"{row.l2_units:.1f}"]
        assert_has("speed.md", [f"{row.n:,}", of, row.norm, *cells, f"{row.mib:.0f}"])


def test_the_seconds_of_penalised_fits_of_images() -> None:
    table = rows("fits_of_images")
    assert (table.outcome == "returned").all() and table.gap.max() < 1e-9
    assert set(table.loss) == {"logistic", "squared"} and table.n.nunique() == 3
    for row in table.itertuples():
        (rate,) = re.findall(r"dgemm (\d+) GFLOP", row.machine)
        floor = row.n**3 / 3 / (float(rate) * 1e9)
        cells = [f"{row.cpu_seconds:.3g} s", f"{row.gap:.0e}", f"{floor:.2g} s"]
        program = f"{row.loss}, {row.norm}, {row.penalty:g}"
        assert_has("finite-limits.md", [f"{row.n:,}", program, *cells])


def test_spectra_behind_random_gates() -> None:
    frame = rows("spectra")
    kinds = frame.groupby(["width", "depth"])
    middle = kinds.median(numeric_only=True)
    shown = [line for line in lines("research/kernels.md") if len(line) == 13 and line[0].isdigit()]
    assert (kinds.size() == 11).all() and len(shown) == len(middle)
    names = [
        "degrees_of_freedom", "ideal_least", "gates_least", "predicted_least", "least",
        "ideal_steps", "gates_steps", "predicted_steps", "steps", "trained_steps", "small_steps",
    ]  # fmt: skip
    ran = kinds.trained_steps.count()
    assert set(ran[middle.trained_steps.notna()]) == {1, 5}  # at width 25 and depth 2 one
    for width, depth, *cells in shown:
        one = middle.loc[(int(width), int(depth))]
        held("research/kernels.md", [width, depth, *cells])
        for name, cell in zip(names, cells, strict=True):
            text = cell.replace(",", "")
            known = {"never": math.inf, "inf": math.inf, "-": math.nan}
            digit = 10.0 ** -len(text.partition(".")[2])  # the last one that is shown
            value = known[text] if text in known else float(text)
            assert value == pytest.approx(one[name], abs=0.51 * digit, nan_ok=True), (name, cell)


def test_what_is_said_of_spectra() -> None:
    page = said("research/kernels.md")
    frame = rows("spectra")
    kinds = frame.groupby(["width", "depth"])
    middle, means = kinds.median(numeric_only=True), kinds.mean(numeric_only=True)
    squares = means.mean_square / means.predicted_mean_square
    assert abs(squares.loc[500] - 1).max() < 0.05 and "within 5 % at width 500" in page
    narrow = squares.loc[25].drop(16)
    assert f"{100 * abs(narrow - 1).max():.0f} % at width 25, but for depth 16" in page
    assert f"they are {squares.loc[(25, 16)]:.1f} times as large" in page
    wide = middle.loc[500].drop(2)
    taken = 1 - wide.gates_least / wide.ideal_least
    assert 0.25 < taken.min() < taken.max() < 0.42 and "a quarter to two fifths" in page
    apart = abs(wide.predicted_least - wide.least).max(), abs(wide.predicted_steps / wide.steps - 1)
    assert f"predicted within {apart[0]:.2f} of the median" in page
    assert 0.10 < apart[1].max() < 0.15 and "steps within 15 %" in page
    least = middle.least.loc[25].drop(2)
    assert f"{least.min():.3f} to {least.max():.2f} (medians)" in page
    ran = frame[frame.trained_steps.notna() & np.isfinite(frame.steps)]
    fewer, away = ran.steps / ran.trained_steps, abs(ran.small_steps / ran.steps - 1)
    assert f"{len(ran)} networks take {fewer.min():.1f} to {fewer.max():.1f} times fewer" in page
    growth = ran.trained_growth
    assert f"whose trace grows {growth.min():.1f} to {growth.max():.1f} times" in page
    there = away[np.isfinite(away)]
    assert f"{len(there)} of them take the steps of K_0 to {100 * there.max():.1f} %" in page
    assert f"{(there <= 0.04).sum()} to 4 % (one has not" in page and len(there) == len(ran) - 1
    over = kinds.variance.median() / kinds.printed_variance.median()
    assert (
        f"{over.loc[(500, 20)]:.0f} at width 500 and {over.loc[(25, 20)]:.0f} at width 25" in page
    )


def test_path_kernels_of_learned_gates() -> None:
    page = said("research/kernels.md")
    runs = rows("path_kernels_mnist").sort_values("step").groupby(["widths", "loss", "seed"])
    start, end = runs.first(), runs.last()
    for key in start.index:
        a, b = start.loc[key], end.loc[key]
        errors = (a.npk_error, b.npk_error, a.ntk_error, b.ntk_error, b.error)
        cells = [f"{a.nu:,.0f}", f"{b.nu:,.0f}", *(f"{100 * one:.2f}" for one in errors)]
        line = [f"{key[0]}, {key[1]}", str(key[2]), *cells]
        assert line in lines("research/kernels.md"), line
    fell = end.nu / start.nu
    assert f"nu fell in {(fell < 1).sum()} of {len(fell)} runs" in page
    assert f"to {fell.min():.2f} to {fell.max():.2f} of what it was" in page
    by_loss = fell.groupby("loss").mean()
    assert f"logistic loss ({by_loss.logistic:.2f}) than on squares ({by_loss.squared:.2f})" in page
    better, worse = ((s * (end.npk_error - start.npk_error) < 0).sum() for s in (1, -1))
    assert f"machine fell in {better} runs and rose in {worse}" in page
    assert f"machine fell in {(end.ntk_error < start.ntk_error).sum()}." in page
    assert f"worse than the network in {(end.npk_error > end.error).sum()}." in page


def test_whose_gates_classify_best() -> None:
    frame = rows("whose_gates_mnist")
    titles = {
        "adapting": "adapting (ReLU)", "own start": "frozen, its own start",
        "another's": "frozen, of another untrained network (GaLU)",
        "learned": "frozen, learned by the first; new weights",
    }  # fmt: skip
    for gates, here in frame.groupby("gates"):
        cells = [
            f"{100 * one.mean():.2f} ({100 * one.min():.2f} to {100 * one.max():.2f})"
            for one in (here.error, here.npk_error)
        ]
        assert_has("research/kernels.md", [titles[str(gates)], *cells])
    errors = frame.pivot(index="seed", columns="gates", values="error")
    machines = frame.pivot(index="seed", columns="gates", values="npk_error")
    assert (errors["adapting"] < errors["own start"]).sum() == len(errors) == 10
    assert (errors["learned"] < errors["another's"]).sum() == 8
    assert np.sign(errors["learned"] - errors["adapting"]).value_counts().to_dict() == {
        1: 8, -1: 1, 0: 1}  # fmt: skip
    assert (machines["learned"] < machines["another's"]).sum() == 7


def test_the_table_of_peers_is_that_of_the_rows() -> None:
    frame = rows("peers")
    frame = frame[frame.target == 1e-8].assign(
        case=lambda one: one.case.str.removeprefix("linear, ")
    )
    (head,) = [line for line in lines("speed.md") if line[0] == "solver" and len(line) == 13]
    named = {"MNIST halves": "images, halves, n = 700",
             "FReLU, digits, (20, 500)": "FReLU, digits, H = 20, n = 500"}  # fmt: skip
    cases = [named.get(one, one.replace("MNIST", "images")) for one in head[1:]]
    assert set(cases) == set(frame.case)
    for solver, here in frame.groupby("solver"):
        found = here.set_index("case")
        (line,) = [one for one in lines("speed.md") if one[0] == solver and len(one) == 13]
        for case, cell in zip(cases, line[1:], strict=True):
            assert _as_peer(cell, found.loc[case] if case in found.index else None), (solver, case)
        held("speed.md", line)


def _as_peer(cell: str, row: pd.Series | None) -> bool:
    """True for a cell with the seconds, or with how far the solver came."""
    if row is None:
        return cell == ""
    if row.status == "reached":
        return cell == f"{row.cpu_seconds:.2g}"
    known = math.isfinite(row.gap)  # infinite for an answer that separates nothing
    best = f"best {row.gap:.0e} in {row.cpu_seconds:.2g}" if known else ""
    status = {"over 20 s": "over 20", "not reached": ""}.get(row.status, row.status.split(":")[0])
    return cell == ", ".join(part for part in (status, best) if part)


def test_units_of_three_activations() -> None:
    frame, page = rows("activations"), "research/activations.md"
    keys = ["activation", "biases", "gain", "samples", "xi_1"]
    assert frame.groupby(keys).size().eq(24).all() and len(frame) == 2 * 6 * 24
    for (name, biases, gain, samples, order), here in frame.groupby(keys):
        title = name if gain == 3 else f"{name}, gain {gain:g}, {samples:,} samples"
        sides = {"above 0": here.bias > 0, "below 0": here.bias < 0}
        sides = sides if biases else {"none": here.bias == 0}
        for side, one in ((side, here[which]) for side, which in sides.items()):
            other = 6 - order
            cells = [title, f"{order:g}, {other:g}", side, str(len(one))]
            cells += [f"{one.localisation.mean():.3f}", f"{one.fast.mean():.3f}"]
            assert_has(page, cells)
    with_, bare = frame.loss[frame.biases], frame[~frame.biases].groupby("activation").loss
    told = (
        f"Losses end at {with_.min():.3f} to {with_.max():.3f}, and without biases at "
        f"{bare.min().relu:.3f} to {bare.max().relu:.3f} (ReLU) and about "
        f"{bare.mean().sigmoid:.3f} (sigmoid), where the constant 1/2 has {0.5**2 / 2:g}"
    )
    assert told in said(page)
    assert bare.max().sigmoid < 0.115  # "hardly learn"
    relu = frame[(frame.activation == "relu") & frame.biases].groupby(["gain", "xi_1"])
    fast = relu.fast.mean()  # the order decides
    assert (fast[:, 5.0] < 0.1).all() and (fast[:, 1.0] > 0.7).all()
    over_noise = relu.localisation.mean() / (3 / 42)
    assert over_noise[3, 5] < 1.1  # "hardly more localised than noise"
    assert f"bumps of {over_noise[100, 5]:.1f} times the localisation of noise" in said(page)
    assert over_noise[100, 1] > 2


def test_codes_of_ten_labels() -> None:
    labels = rows("thesis_labels").query("figure == 'labels'")
    ends = labels.drop_duplicates(["target", "draws", "seed"])
    for (target, draws), here in ends.groupby(["target", "draws"]):
        cells = [f"{target:.2f}", "one normal" if draws == 1 else f"among {draws:.0f}"]
        cells += [_range(here.information, ".2f"), _range(here.divergence, ".3f")]
        assert cells in lines("research/thesis.md"), cells


def _range(values: pd.Series, style: str) -> str:
    least, most = (format(x, style) for x in (values.min(), values.max()))
    return least if least == most else f"{least} to {most}"


def test_exits_of_convolutions() -> None:
    found = rows("thesis_exits_mnist").dropna(subset="exit")
    for (labels, mode), of in {
        (n, m): found[found.labels == n] for n in (5, 10, 30) for m in MODES
    }.items():
        means = of.groupby(["method", "exit"])[mode].mean()
        for exit_ in range(1, 5):
            cells = [f"{labels}", mode, f"{exit_}"]
            cells += [
                f"{means[name, exit_]:.1f}"
                for name in ("exit-wise", "distilled", "semi-supervised")
            ]
            assert cells in lines("research/thesis.md"), cells
    ten = found[found.labels == 10].groupby(["method", "exit"])
    for name in (
        "tau = 1",
        "tau = 2",
        "tau = 3",
        "tau = 4",
        "annealed",
        "annealed, all later teach",
    ):
        cells = [name, f"{ten.temperature.mean()[name, 1]:.1f}"]
        cells += [f"{ten.budget.mean()[name, 4]:.1f}"]
        cells += [f"{ten.anytime.mean()[name, k]:.1f}" for k in (1, 2, 3, 4)]
        assert cells in lines("research/thesis.md"), cells
