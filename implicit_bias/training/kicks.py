"""Runs that rest before they separate the data: off they go again, and back where that is worse."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .quasi_newton import numbers, rows

__all__ = ["KICKS", "astray", "keep_best", "kicked", "no_kicks", "resting", "start_watch"]

# A run rests if so many steps have not lowered log(loss) by what counts as something. Of 1154
# starts that separate the data by themselves 1150 never wait so long; the other four, deep gated
# networks of two units a layer, do so after 341 to 793 steps.
PATIENCE = 200
# It leaves its place so many times at most: what nothing separates costs no more than that.
KICKS = 3
# By so much of its length, in a random direction. What frees a run is less this than the lower
# scale that it begins from: weights grow in the free phase, and with them the barriers between
# its minima. A deep gated network that had come from length 1 to 24 was freed by none of 24 kicks
# of 1 to 10 per cent in 500 steps; at the scale of the start all of 30, of 0 to 20 per cent,
# separated the data within 32 steps. At a saddle, which no scale leaves, it is the direction.
KICK = 0.1

Mask = NDArray[np.bool_]
State = dict[str, Tensor]


def no_kicks(like: Tensor) -> State:
    """What is known of runs (B, P) that have not moved yet."""
    zero = torch.zeros(len(like), dtype=torch.float64)
    return {
        "kicks": zero,  # that the run has had
        "waited": zero.clone(),  # steps since log(loss) fell by something
        "fell_to": torch.full_like(zero, torch.inf),  # log(loss) then
        "best": torch.zeros_like(like),  # point of the least log(loss) of those it rested at
        "best_log_loss": torch.full_like(zero, torch.inf),
    }


def resting(state: State, free: Mask, worth: float) -> Mask:
    """Count a step; which of the runs (B,) on their way have not fallen by `worth` for long."""
    log_loss, fell_to, waited = (numbers(state[k]) for k in ("log_loss", "fell_to", "waited"))
    fell = free & (log_loss < fell_to - worth)
    waited = np.where(fell, 0.0, waited + free)
    rested: Mask = free & (waited >= PATIENCE)
    state["fell_to"] = torch.from_numpy(np.where(fell, log_loss, fell_to))
    state["waited"] = torch.from_numpy(np.where(rested, 0.0, waited))
    return rested


def keep_best(state: State, rested: Mask) -> Mask:
    """Keep the points of runs (B,) that rest, if they are better; who has a better one."""
    log_loss, least = numbers(state["log_loss"]), numbers(state["best_log_loss"])
    better = rested & (log_loss <= least)
    state["best"] = torch.where(column(better, state["best"]), state["point"], state["best"])
    state["best_log_loss"] = torch.from_numpy(np.where(better, log_loss, least))
    return rested & ~better


def kicked(state: State, leaving: Mask, off: Mask) -> Tensor:
    """Points (B, P), the best ones of runs that leave, with noise in those that are kicked off.

    The noise depends on how many kicks the run has had and on nothing else, so that a run is
    kicked alike alone, among others, and after it was resumed.
    """
    best = torch.where(column(leaving, state["best"]), state["best"], state["point"])
    count = numbers(state["kicks"])
    noise = torch.zeros_like(best)
    for b in np.flatnonzero(off):
        drawn = np.random.default_rng(int(count[b])).standard_normal(best.shape[1])
        noise[b] = torch.from_numpy(drawn / np.linalg.norm(drawn)).to(noise)
    norms = numbers(torch.linalg.vector_norm(best, dim=1, dtype=torch.float64))
    state["kicks"] = torch.from_numpy(count + off)
    length = np.where(off, KICK * np.where(norms > 0, norms, 1.0), 0.0)
    return best + rows(length, best) * noise


def start_watch(state: State, runs: Mask) -> None:
    """Count anew in the runs (B,) marked."""
    fell_to = np.where(runs, np.inf, numbers(state["fell_to"]))
    state["fell_to"] = torch.from_numpy(fell_to)


def astray(state: State) -> Mask:
    """Which runs (B,) are at a larger loss than where they once rested."""
    worse: Mask = numbers(state["log_loss"]) > numbers(state["best_log_loss"])
    return worse


def column(mask: NDArray[Any], like: Tensor) -> Tensor:
    """A mask (B,) for tensors (B, P) like this one."""
    return torch.from_numpy(mask).to(like.device)[:, None]
