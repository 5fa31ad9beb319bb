#!/usr/bin/env python3
"""Trains the bundled prior from scratch on freely licensed photographs and procedural pictures, or continues a prior.

    python3 tools/train_prior.py --seconds 7200 --out DIR
    python3 tools/train_prior.py --seconds 540 --out DIR --size base --device cuda --pack prior-pack.zip --start priors/base.onnx --pages 0.1 --dark 0.1

The same command with the same --out trains further from the last checkpoint. docs/prior.md describes data and results.
"""

from __future__ import annotations

import time

BEGIN = time.monotonic()  # before the slow imports: --seconds counts them

import argparse  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from dataclasses import replace  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402

import torch  # noqa: E402
import torch.distributed as distributed  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ddiff_torch.onnx_prior import load  # noqa: E402
from prior_training import packed, pages, photographs, pool  # noqa: E402
from prior_training.held import Held  # noqa: E402
from prior_training.loop import GPU, SIZES, Trainer, train  # noqa: E402

ENDING = 20  # seconds of --seconds for the last checkpoint and the export


def join(args: argparse.Namespace, rank: int) -> list[subprocess.Popen]:
    """Connects the processes; the first process starts the others and returns them."""
    if args.processes == 1:
        return []
    others = []
    meeting = (args.out / "meeting").resolve()
    if rank == 0:  # start the same command with a rank; the pool is already built
        meeting.unlink(missing_ok=True)
        for other in range(1, args.processes):
            others.append(subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "PRIOR_RANK": str(other)}))
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=args.processes)
    return others


def said(what: str) -> None:
    print(f"train_prior: {time.monotonic() - BEGIN:.0f} s: {what}", flush=True)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--out", type=Path, required=True, help="folder for checkpoint, loss curve and prior.onnx")
    p.add_argument("--seconds", type=float, default=6300, help="end after this time, with everything written (default 6300)")
    p.add_argument("--iterations", type=int, default=0, help="train up to this number of iterations instead")
    p.add_argument("--photographs", type=Path, help="folder of the unpacked packages (default OUT/photographs)")
    p.add_argument("--pack", type=Path, help="file of make prior-pack with photographs and fonts, for a machine without network")
    p.add_argument("--start", type=Path, help="begin with the weights of this prior, at a lower learning rate")
    p.add_argument("--pages", type=float, default=0, help="share of crops from pages of text (default 0)")
    p.add_argument("--dark", type=float, default=0, help="share of darkened crops (default 0)")
    p.add_argument("--leaves", type=int, default=300, help="number of procedural pictures (default 300)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=1, help="threads of each process (default 1)")
    p.add_argument("--processes", type=int, default=os.cpu_count(), help="processes that train together (default: number of cores)")
    p.add_argument("--size", choices=SIZES, default="small", help="small (default), base with four times the weights, or tiny for a trial")
    p.add_argument("--device", default="cpu", help="device of PyTorch: cpu (default) or cuda, with one process")
    p.add_argument("--float32", action="store_true", help="do not use bfloat16, for processors without it")
    p.add_argument("--export-only", action="store_true", help="export the checkpoint and exit")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    rank = int(os.environ.get("PRIOR_RANK", "0"))
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        continued = {"rate": 8e-4, "warmup": 150, "decay_from": 0.3} if args.start else {}
        gpu = args.device != "cpu"
        config = replace(SIZES[args.size], seed=args.seed, half=not args.float32, **(GPU if gpu else {}), **continued)
        wanted = photographs.PHOTOGRAPHS + (photographs.MORE if args.size == "base" or args.pack else ())
        args.processes = 1 if gpu else args.processes
        if args.export_only:
            trainer = Trainer(config)
            trainer.restore(args.out / "checkpoint.pt")
        else:
            fonts, held = pages.FONTS, []
            if args.pack:
                fonts = args.out / "fonts"
                photos, held = packed.read(args.pack, fonts)
            else:
                folder = args.photographs or args.out / "photographs"
                if rank == 0:
                    photographs.fetch(folder, wanted)
                photos = [partial(photographs.read, p, folder) for p in wanted]
            share = 0.7 if args.pages else 0.6
            finish = pool.start(photos, args.leaves, args.seed, share, args.out / "leaves.npy", args.pages, args.dark, fonts)
            trainer = Trainer(config, rank, args.processes, args.device)
            if args.start:
                trainer.begin(load(args.start))
            if gpu:
                trainer.compile()
                said("compiled")
            pictures = finish(args.device)
            said(f"photographs={len(photos)} pictures={len(pictures.sizes)}")
            others = join(args, rank)
            look = Held(held, args.device, config.batch, config.side).look(trainer, said) if held and rank == 0 else lambda: None
            train(trainer, pictures, args.out, args.seconds - ENDING - (time.monotonic() - BEGIN), args.iterations, look=look)
            if rank > 0:
                return 0
            for other in others:
                other.wait()
    except (ValueError, OSError, subprocess.CalledProcessError) as err:
        print(f"train_prior: {err}", file=sys.stderr)
        return 2
    from prior_training.export import card, export  # imports onnx

    more = f"; {args.pages:.0%} of the crops are pages of text" * (args.pages > 0) + f"; {args.dark:.0%} are darkened" * (args.dark > 0)
    more += f"; it continues {args.start}" * (args.start is not None)
    name = "base" if args.size == "base" else "pages-of-text" if args.pages else "leaves-and-photographs"
    where = "two shared CPU cores" if not gpu else torch.cuda.get_device_name()
    export(trainer.trained(), args.out / "prior.onnx", card(trainer.elapsed / 3600, where, trainer.iteration, len(wanted), name, more))
    print(f"iterations={trainer.iteration} hours={trainer.elapsed / 3600:.2f} file={args.out / 'prior.onnx'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
