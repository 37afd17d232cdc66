"""Restarts of networks that stall before they separate the data, from the best point so far."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .batched import lengths, numbers, per_network, to_numpy

# A network stalls if so many steps have not lowered log(loss) noticeably. Of 1154 starts that
# separate the data by themselves 1150 never wait so long; the other four, deep gated networks of
# two units a layer, do so after 341 to 793 steps.
PATIENCE = 200
# More restarts are not made: data that nothing separates cost no more than these.
MAX_RESTARTS = 3
# Length of the random perturbation, as a share of the point's. It frees a network less than the
# lower scale that it restarts at: weights grow before the data are separated, and with them the
# barriers between minima. A deep gated network that had come from length 1 to 24 was freed by none
# of 24 perturbations of 1 to 10 per cent in 500 steps; at the scale of the start all of 30, of 0 to
# 20 per cent, separated the data within 32 steps. At a saddle, which no scale leaves, it is the
# direction.
PERTURBATION = 0.1

Mask = NDArray[np.bool_]
State = dict[str, Tensor]


def restart_state(like: Tensor) -> State:
    """Return the state of networks with weights (B, P) that have taken no step yet."""
    zero = torch.zeros(len(like), dtype=torch.float64)
    return {
        "n_restarts": zero,
        "stalled_steps": zero.clone(),  # since log(loss) last fell noticeably
        "progress_log_loss": torch.full_like(zero, torch.inf),  # log(loss) then
        "best": torch.zeros_like(like),  # point of the least log(loss) among those stalled at
        "best_log_loss": torch.full_like(zero, torch.inf),
    }


def stalled(state: State, searching: Mask, noticeable: float) -> Mask:
    """Count a step, and return which networks (B,) have stalled.

    Parameters
    ----------
    state : dict of tensors
        Changed in place: a network that has stalled counts anew.
    searching : (B,) boolean array
        Networks that have not separated the data yet.
    noticeable : float
        A fall of log(loss) that counts.
    """
    names = ("log_loss", "progress_log_loss", "stalled_steps")
    log_loss, progress, waited = (to_numpy(state[name]) for name in names)
    fell = searching & (log_loss < progress - noticeable)
    waited = np.where(fell, 0.0, waited + searching)
    found: Mask = searching & (waited >= PATIENCE)
    state["progress_log_loss"] = torch.from_numpy(np.where(fell, log_loss, progress))
    state["stalled_steps"] = torch.from_numpy(np.where(found, 0.0, waited))
    return found


def record_best(state: State, networks: Mask) -> Mask:
    """Store the points of the networks marked (B,) where better; return those with a better one."""
    log_loss, least = to_numpy(state["log_loss"]), to_numpy(state["best_log_loss"])
    better = networks & (log_loss <= least)
    chosen = per_network(better, state["best"])
    state["best"] = torch.where(chosen, state["point"], state["best"])
    state["best_log_loss"] = torch.from_numpy(np.where(better, log_loss, least))
    return networks & ~better


def perturbed_best(state: State, returning: Mask, perturbed: Mask) -> Tensor:
    """Return points (B, P): the best ones of networks that return, some of them perturbed.

    The noise depends on how many restarts the network has had and on nothing else, so that it is
    the same alone, among others, and after a run was resumed.

    Parameters
    ----------
    state : dict of tensors
        Counts the restarts.
    returning, perturbed : (B,) boolean arrays
        Which networks go back to their best point, and to which of these noise is added.
    """
    best = torch.where(per_network(returning, state["best"]), state["best"], state["point"])
    count = to_numpy(state["n_restarts"])
    noise = torch.zeros_like(best)
    for b in np.flatnonzero(perturbed):
        drawn = np.random.default_rng(int(count[b])).standard_normal(best.shape[1])
        noise[b] = torch.from_numpy(drawn / np.linalg.norm(drawn)).to(noise)
    (norms,) = numbers(lengths(best))
    state["n_restarts"] = torch.from_numpy(count + perturbed)
    length = np.where(perturbed, PERTURBATION * np.where(norms > 0, norms, 1.0), 0.0)
    return best + per_network(length, best) * noise


def reset_patience(state: State, networks: Mask) -> None:
    """Let the networks marked (B,) count from their next step."""
    progress = np.where(networks, np.inf, to_numpy(state["progress_log_loss"]))
    state["progress_log_loss"] = torch.from_numpy(progress)


def above_best(state: State) -> Mask:
    """Return which networks (B,) are at a larger loss than the best that they have stalled at."""
    worse: Mask = to_numpy(state["log_loss"]) > to_numpy(state["best_log_loss"])
    return worse
