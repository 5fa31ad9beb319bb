"""The bridge to DeepInverse: a reconstructor f(y, physics)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ._operator import copied, operator
from ._session import Session, restore


def reconstructor(session: Session | None = None, img_size: tuple[int, int, int] | None = None, **settings: Any) -> Any:
    """Returns a reconstructor f(y, physics) for DeepInverse: restorations of measurements (N, ...) as a tensor (N, 3, height, width).

    session: default: that of ddiff.restore. img_size: (3, height, width), where the physics is not linear.
    settings: of Session.restore, such as method or sigma, the noise of y.

    Without sigma, GaussianNoise has its own, also one for each image, and ZeroNoise 0. Any other noise, such as PoissonNoise or UniformNoise, counts as Gaussian
    noise of the root mean square that it adds to y, which is a warning. Warnings of results are warnings of Python. The tensors of a physics may be those of
    all images, or one for each, as masks are. Raises ValueError for a physics without a known noise, or whose tensors fit neither.
    """
    import torch

    try:
        from deepinv.models import Reconstructor as Base
    except ModuleNotFoundError:
        Base = torch.nn.Module

    class Reconstructor(Base):  # type: ignore[misc, valid-type]
        def forward(self, y: Any, physics: Any, **_: Any) -> Any:
            with torch.no_grad():
                sigmas = [None] * len(y) if "sigma" in settings else _sigmas(getattr(physics, "noise_model", None), y)
                x = torch.zeros(len(y), *img_size) if img_size else torch.zeros_like(physics.A_adjoint(y))
                parts = _parts(physics, x)
            call = session.restore if session else restore
            images: list[Any] = [None] * len(y)
            # Images of one operator and one noise are a batch. The tensors of the physics may have changed since the last call.
            for part in dict.fromkeys(parts):
                A = operator(part, x[:1].cpu())
                for sigma in dict.fromkeys(sigmas):
                    group = [i for i in range(len(y)) if parts[i] is part and sigmas[i] == sigma]
                    chosen = settings if sigma is None else {"sigma": sigma, **settings}
                    for i, r in zip(group, call([y[i] for i in group], operator=A, **chosen) if group else []):
                        images[i] = r.image
                        for w in r.warnings:
                            warnings.warn(f"image {i}: {w.text}", stacklevel=2)
            return torch.from_numpy(np.stack(images).transpose(0, 3, 1, 2).copy()).to(y.device)

    return Reconstructor()


def _sigmas(noise: Any, y: Any) -> list[float]:
    """Returns the standard deviation of the noise of each measurement."""
    import torch

    kinds = [kind.__name__ for kind in type(noise).__mro__]
    if "ZeroNoise" in kinds:
        return [0.0] * len(y)
    if "GaussianNoise" in kinds:
        stated = torch.as_tensor(noise.sigma).flatten().tolist()
        if len(stated) not in (1, len(y)):
            raise ValueError(f"the noise has {len(stated)} values of sigma for {len(y)} measurements; give reconstructor(sigma=...)")
        return stated * (len(y) if len(stated) == 1 else 1)
    before = noise.rng.get_state() if getattr(noise, "rng", None) is not None else None
    try:  # what it adds to y, which is the best known estimate of A(x)
        with torch.random.fork_rng(devices=[]):
            found = [float((noise(one[None]) - one).square().mean().sqrt()) for one in y]
    except Exception as err:  # of any kind: it is of somebody else
        raise ValueError(f"the noise of the physics, {kinds[0]}, is unknown; give reconstructor(sigma=...): {err}") from err
    finally:
        if before is not None:
            noise.rng.set_state(before)  # DeepInverse may have another generator now
    if not np.isfinite(found).all():
        raise ValueError(f"{kinds[0]} adds values that are not finite to y; give reconstructor(sigma=...)")
    said = ", ".join(f"{s:.3g}" for s in found)
    warnings.warn(f"{kinds[0]} counts as Gaussian noise of sigma {said}, the root mean square of what it adds to y; reconstructor(sigma=...) states another", stacklevel=3)
    return found


def _parts(physics: Any, x: Any) -> list[Any]:
    """Returns the physics of each image: itself, where its tensors are those of all images, or copies with those of one."""
    import torch

    n = len(x)
    probe = torch.rand_like(x)

    def fit(parts: list[Any]) -> bool:
        try:
            whole, single = physics.A(probe), torch.cat([part.A(probe[i : i + 1]) for i, part in enumerate(parts)])
            return torch.allclose(single, whole, rtol=1e-4, atol=1e-5 * float(whole.abs().max()))
        except Exception:  # of any kind: shapes that do not fit
            return False

    parts = [physics] * n
    if n == 1 or fit(parts):
        return parts
    parts = []
    for i in range(n):
        part = copied(physics)
        for module in part.modules():
            for held in module._parameters, module._buffers, module.__dict__:
                for name, value in held.items():
                    if isinstance(value, torch.Tensor) and value.ndim > 0 and len(value) == n:
                        one = value[i : i + 1]
                        held[name] = torch.nn.Parameter(one, False) if isinstance(value, torch.nn.Parameter) else one
        parts.append(part)
    if not fit(parts):
        raise ValueError("the tensors of the physics are neither those of all images nor one for each; call the reconstructor for one image at a time")
    return parts
