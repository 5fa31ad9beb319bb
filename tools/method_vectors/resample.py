"""Steps of ReSample, with the code of soominkwon/resample at 3e332b2.

The model is that of haar.py, with whose schedule the code has the times of this project and ends at abar = 1. The code optimises at every
tenth step from the end, so that the recorded steps are those around the optimisations of a whole run. Its two functions for optimisations
get fewer iterations, and a larger tolerance, than their default arguments. Its "cuda" is read as "cpu".
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from unittest import mock

import torch
from torch import Tensor

from method_vectors.author_code import Progress, environment
from method_vectors.case import Case, measure, start
from method_vectors.haar import LATENT, Latents, strides
from method_vectors.noise import SIDE, draw

# Of 38 steps, the 18th optimises the image, the 28th and the last one the latent.
STEPS, RECORDED, RESAMPLED = 38, [1, 2, 17, 18, 19, 27, 28, 29, 37, 38], [18, 28]


def resample(folder: str) -> Iterator[Case]:
    """DDIMSampler.resample_sampling for super-resolution."""
    empty = ("matplotlib", "matplotlib.pyplot", "torchvision", "torchvision.utils", "motionblur", "motionblur.motionblur", "einops", "PIL", "tqdm",
             "skimage", "skimage.metrics")  # fmt: skip
    with environment(folder, *empty):
        sys.modules["torchvision"].torch = torch
        sys.modules["tqdm"].tqdm = Progress
        module = importlib.import_module("ldm.models.diffusion.ddim")
        conditions = importlib.import_module("ldm_inverse.condition_methods")
        measurements = importlib.import_module("ldm_inverse.measurements")
        # The first and the last optimisation end before their largest number of iterations. No loss is within 0.1 % of the tolerance.
        pixel_steps, latent_steps, tolerance = 120, 90, 0.4994
        settings = {"method": "resample", "steps": STEPS, "pixel_steps": pixel_steps, "latent_steps": latent_steps, "tolerance": tolerance}
        case = Case("resample_super_resolution", "super_resolution", settings, recorded=RECORDED)
        operator = measurements.get_operator("super_resolution", in_shape=(1, 3, SIDE, SIDE), scale_factor=4, device="cpu")
        case.y = measure(operator.forward)
        model = Latents()
        condition = conditions.get_conditioning_method("ps", model, operator, measurements.get_noise("gaussian", sigma=0))
        asked, times = strides(STEPS)
        noise = iter([draw(0, times[i - 1]).view(LATENT) for i in RESAMPLED])

        sampler = module.DDIMSampler(model)
        sampler.pixel_optimization = functools.partial(sampler.pixel_optimization, max_iters=pixel_steps, eps=tolerance)
        sampler.latent_optimization = functools.partial(sampler.latent_optimization, max_iters=latent_steps, eps=tolerance)
        with (  # randn is for the noise of eta = 0
            mock.patch.object(module.DDIMSampler, "register_buffer", object.__setattr__),
            mock.patch.multiple(torch, randn=lambda *_, **__: torch.zeros(LATENT), randn_like=lambda *_, **__: next(noise)),
        ):
            sampler.make_schedule(asked, verbose=False)
            _, made = sampler.resample_sampling(
                case.y, condition.conditioning, None, LATENT, operator.forward, x_T=start().view(LATENT), log_every_t=1)  # fmt: skip
        case.states = [made["x_inter"][i].detach().clone() for i in RECORDED]
        yield case
