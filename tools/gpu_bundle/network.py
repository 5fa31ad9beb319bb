#!/usr/bin/env python3
"""Times the score network and whole steps with ONNX Runtime, as calls and as CUDA graphs, beside PyTorch, in one process.

    python3 network.py --prior prior.onnx --graphs DIR --out OUT                                                     # on a GPU, about five minutes
    python3 network.py --prior prior.onnx --graphs DIR --out OUT --provider cpu --size 32 --batches 2 --calls 3      # test on a CPU

A row has the median milliseconds of a call whose tensors stay on the device; the GPU's own time and the number of kernels; the seconds until the first
call; the largest difference from PyTorch in float32 as a share of the largest value, and "same" if five calls gave equal bits. All rows go to
OUT/network.json, after each row. A row that fails has its error, and the next one starts. --until starts no row after so many seconds.
"""

from __future__ import annotations

import argparse
import collections
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import torch  # before ONNX Runtime: loads CUDA's libraries
import onnxruntime as ort  # isort: skip
from ddiff_torch.onnx_prior import load

# As internal/restore/onnx/onnxruntime/settings.go.
OPTIONS = {"device_id": "0", "arena_extend_strategy": "kSameAsRequested", "cudnn_conv_algo_search": "HEURISTIC", "cudnn_conv_use_max_workspace": "1",
           "do_copy_in_default_stream": "1", "prefer_nhwc": "0"}
TIME = 300  # of the noise level


class Bench:
    def __init__(self, o: argparse.Namespace) -> None:
        self.o, self.begin, self.rows = o, time.monotonic(), []
        self.cuda = o.provider == "cuda"
        self.device = "cuda" if self.cuda else "cpu"
        self.network = load(o.prior)
        self.weights = {t.name: t.raw_data for t in onnx.load(o.prior).graph.initializer}

    def sync(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def row(self, name: str, batch: int, make: Callable[[dict], tuple[Callable[[], object], Callable[[], np.ndarray] | None, bool]], want: np.ndarray | None) -> None:
        """Times what make prepares: a call, a function that reads its output, and whether its kernels can be counted."""
        if self.o.only not in name or time.monotonic() - self.begin > self.o.until:
            return
        row: dict = {"name": name, "batch": batch}
        try:
            begin = time.monotonic()
            call, read, countable = make(row)
            for _ in range(4):
                call()
            self.sync()
            row["make_s"] = time.monotonic() - begin
            if read and want is not None:
                seen = []
                for _ in range(5):
                    call()
                    self.sync()
                    seen.append(read())
                row["difference"] = float(np.abs(seen[0] - want).max() / np.abs(want).max())
                row["same"] = all(np.array_equal(seen[0], v) for v in seen)
            row["ms"] = self.median(call)
            if countable and self.cuda:
                row.update(self.kernels(call))
        except Exception as err:  # the next row
            row["error"] = f"{type(err).__name__}: {(str(err).strip().splitlines() or [''])[0][:200]}"
        self.rows.append(row)
        (Path(self.o.out) / "network.json").write_text(json.dumps(self.rows, indent=1))
        said = row.get("error") or (f"{row['difference']:.1e} {'same' if row['same'] else 'VARIES'}" if "same" in row else "")
        print(f"{name:<46} b{batch:<3} {row.get('ms', float('nan')):>9.3f} ms  gpu {row.get('gpu_ms', 0):>8.3f} ms  kernels {row.get('kernels', 0):>5}  "
              f"make {row.get('make_s', 0):>5.1f} s  {said}", flush=True)

    def median(self, call: Callable[[], object]) -> float:
        sample = []
        for _ in range(self.o.calls):
            begin = time.perf_counter()
            call()
            self.sync()
            sample.append((time.perf_counter() - begin) * 1000)
        return statistics.median(sample)

    def kernels(self, call: Callable[[], object]) -> dict:
        """Number and time of a call's kernels, of any library in this process, and the longest ones in ms."""
        from torch.profiler import ProfilerActivity, profile

        calls = 3
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            for _ in range(calls):
                call()
            self.sync()
        times, count = collections.Counter(), 0
        for e in p.key_averages():
            t = getattr(e, "self_device_time_total", 0) or getattr(e, "device_time_total", 0)
            if t:
                times[e.key[:90]] += t / 1000 / calls
                count += e.count
        return {"kernels": count // calls, "gpu_ms": sum(times.values()), "longest": dict(times.most_common(12))}

    def model(self, file: Path) -> onnx.ModelProto:
        """A graph with the prior's weights."""
        m = onnx.load(str(file))
        for t in m.graph.initializer:
            if not t.raw_data and int(np.prod(t.dims)):
                t.raw_data = self.weights[t.name.partition("/")[2]]
        return m

    def session(self, file: Path, feeds: Callable[[ort.InferenceSession], dict[str, np.ndarray]], output: str, graph: bool):
        def make(row: dict):
            s = ort.SessionOptions()
            s.log_severity_level = 4  # cuDNN names each plan that it does not use as an error
            providers: list = ["CPUExecutionProvider"]
            model = self.model(file)
            if self.cuda:
                half = any(a.name == "to" and a.i == onnx.TensorProto.FLOAT16 for n in model.graph.node if n.op_type == "Cast" for a in n.attribute)
                s.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
                providers = [("CUDAExecutionProvider", {**OPTIONS, "use_tf32": str(int(half)), "enable_cuda_graph": str(int(graph))})]
            session = ort.InferenceSession(model.SerializeToString(), s, providers=providers)
            binding, values = session.io_binding(), feeds(session)
            for name, v in values.items():
                binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(v, self.device, 0))
            outputs = {v.name: ort.OrtValue.ortvalue_from_numpy(np.zeros(v.shape, np.float32), self.device, 0) for v in session.get_outputs()}
            for name, v in outputs.items():
                binding.bind_ortvalue_output(name, v)
            if not graph:
                row["host_ms"] = self.median(lambda: session.run(None, values))  # with tensors of the host
            options = ort.RunOptions()
            return (lambda: session.run_with_iobinding(binding, options)), (lambda: outputs[output].numpy().copy()), not graph

        return make

    def torch(self, precision: torch.dtype, x: torch.Tensor, t: torch.Tensor, graph: bool, compiled: bool, image: bool = False):
        def make(row: dict):
            m = load(self.o.prior).to(self.device, precision, memory_format=torch.channels_last)
            f, last = m.image if image else m.rest, {}
            if compiled:
                f = torch.compile(f, dynamic=False)
            x_, t_ = x.to(self.device), t.to(self.device)

            def call() -> None:
                with torch.no_grad():
                    last["y"] = f(x_.to(precision).contiguous(memory_format=torch.channels_last), t_)

            def read() -> np.ndarray:
                return last["y"].float().cpu().numpy()

            if not graph:
                return call, read, True
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    call()
            torch.cuda.current_stream().wait_stream(side)
            record = torch.cuda.CUDAGraph()
            with torch.cuda.graph(record):
                call()
            return record.replay, read, False

        return make

    def run(self) -> None:
        batches = [int(n) for n in self.o.batches.split(",")]
        graphs = (False, True) if self.cuda else (False,)
        data = {}
        network = load(self.o.prior).to(self.device)
        for n in batches:
            random = torch.Generator().manual_seed(n)
            image = torch.randn(n, 3, self.o.size, self.o.size, generator=random)
            x = torch.randn(n, self.network.inp.in_channels // 4, self.o.size, self.o.size, generator=random)
            t = torch.full((n,), TIME)
            with torch.no_grad():
                want = [f(v.to(self.device), t.to(self.device)).cpu().numpy() for f, v in ((network.image, image), (network.rest, x))]
            data[n] = image, x, t, want
        for n, (image, _, _, want) in data.items():
            for file in sorted(Path(self.o.graphs).glob(f"network_*_b{n}_{self.o.size}.onnx")):
                for graph in graphs:
                    name = f"{' '.join(file.name.split('_')[:-2])}{' cuda graph' * graph}"
                    self.row(name, n, self.session(file, lambda _, image=image: {"x": image.numpy(), "t": np.array([TIME])}, "y", graph), want[0])
        for n, (_, x, t, want) in data.items():
            for precision in (torch.float16, torch.float32) if self.cuda else (torch.float32,):
                for graph in graphs:
                    name = f"torch rest {str(precision)[6:]}{' cuda graph' * graph}"
                    self.row(name, n, self.torch(precision, x, t, graph, False), want[1])
        for n in batches:
            for file in sorted(Path(self.o.graphs).glob(f"*_b{n}_{self.o.size}.onnx")):
                if not file.name.startswith("network"):
                    for graph in graphs:
                        name = f"step {' '.join(file.name.split('_')[:-2])}{' cuda graph' * graph}"
                        self.row(name, n, self.session(file, noise, "", graph), None)
        for n, (image, _, t, _) in data.items():  # slow to start, therefore last; the whole network, whose linear estimate overflows in float16
            if self.cuda:
                self.row("torch image float16 compiled cuda graph", n, self.torch(torch.float16, image, t, True, True, True), None)


def noise(session: ort.InferenceSession) -> dict[str, np.ndarray]:
    """Inputs of a step: its cost does not depend on them."""
    random = np.random.default_rng(0)
    return {i.name: np.array([TIME]) if i.type == "tensor(int64)" else (0.1 * random.standard_normal(i.shape)).astype(np.float32) for i in session.get_inputs()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("prior", "graphs", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--provider", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--batches", default="1,16")
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--until", type=float, default=330)
    parser.add_argument("--only", default="", help="a part of the names of rows")
    o = parser.parse_args()
    Path(o.out).mkdir(parents=True, exist_ok=True)
    if o.provider == "cuda":
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    print("ONNX Runtime", ort.__version__, ort.get_available_providers(), "torch", torch.__version__, torch.cuda.get_device_name(0) if o.provider == "cuda" else "cpu")
    Bench(o).run()


if __name__ == "__main__":
    main()
