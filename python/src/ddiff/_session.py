"""Sessions: one process of the program, to which arrays go and from which results come through pipes."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ._convert import Picture, described, dimensions
from ._program import PROGRAM, environment
from ._result import ProcessError, RestoreError, Result, Warn

if TYPE_CHECKING:
    from ._operator import Operator

_NO_PICTURE = "phase_retrieval"  # the task whose measurement is none

# What the program calls by its flags has other names here.
_NAMES = {
    "restore: ": "", "tasks[0].": "", "tasks[0]": "task", "methods[0]": "method", "give --mask FILE": "give mask=", "with --kernel FILE": "with kernel=",
    "give --kernel FILE": "give kernel=", "--param std=auto, or std=N": "std=N", "--measurement-range LOW,HIGH": "range=(LOW, HIGH)",
    "--measurement-range": "range", "--sigma": "sigma", "--mask-shows ": "mask_shows=", "--kernel-form ": "kernel_form=", "--unchecked": "a session with check=False", "input: ": "",
}  # fmt: skip


class Session:
    """A process in which models stay loaded.

        with ddiff.Session(device="cpu") as s:
            results = s.restore([y1, y2], task="denoise", sigma="auto")

    One call at a time computes; calls of other threads wait. Not for use in a process that was forked from this one.
    """

    def __init__(
        self, prior: str | os.PathLike[str] = "bundled", device: str = "auto", *, batch: int = 16, precision: str = "float32", threads: int = 0,
        check: bool = True,
    ) -> None:  # fmt: skip
        """Starts the program and opens prior and device, in about half a second for the CPU.

        prior: "bundled", "bundled:base", an ONNX file or the folder of a bundle.
        device: "auto", "cpu", "openvino", "cuda:0", ...
        batch: largest number of pictures that are solved together, 1 to 1024; fewer where they need too much memory.
        precision: of the network: "float32", "bfloat16" or "float16".
        threads: of the CPU; 0 is one per core.
        check: restore with another noise level where the result does not explain the picture, and fail if none does.

        Raises ProcessError with the program's reason.
        """
        where = os.fspath(prior)
        args = [PROGRAM, "session", "--prior", where, "--device", device, "--batch", str(batch), "--precision", precision, "--threads", str(threads)]
        if not check:
            args.append("--unchecked")
        # In a process group of its own: Ctrl-C reaches Python alone, which stops the request.
        self._process = subprocess.Popen(
            args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), start_new_session=True
        )
        self._lock, self._owner, self._last, self._pid = threading.Lock(), 0, 0, os.getpid()
        self._said: deque[str] = deque(maxlen=20)
        self._answers: queue.SimpleQueue[tuple[dict[str, Any], np.ndarray | None, bytes] | None] = queue.SimpleQueue()
        self._requests: queue.SimpleQueue[list[Any] | None] = queue.SimpleQueue()
        # Pipes are read and written by threads: a full one blocks nobody, and Ctrl-C tears no frame.
        self._listener = self._thread(self._listen, self._process.stderr)
        self._thread(self._read, self._process.stdout)
        self._thread(self._write, self._process.stdin)
        try:
            ready = self._next()[0]
        except BaseException:
            self.close()
            raise
        self.version: str = ready["version"]  #: Of the program.
        self.device: str = ready["device"]  #: Provider that computes, such as "cpu".

    def restore(
        self, y: Picture | Sequence[Picture], task: str = "", *, operator: Operator | None = None, sigma: float | str | None = None, method: str = "auto",
        preset: str = "", steps: int = 0, seed: int = 0, mask: Picture = None, kernel: Picture = None, range: tuple[float, float] | None = None,
        photons: float | None = None,
        mask_shows: str = "", kernel_form: str = "",
        solver: Mapping[str, Any] | None = None, keep_observed: bool | None = None, states: Sequence[int] | int = (),
        progress: Callable[[int, int], None] | None = None, **params: float,
    ) -> Any:  # fmt: skip
        """Restores degraded pictures, and returns a Result, or a list of them for a list, a tuple or an array with one dimension more.

        y: an array of height × width × 3, or height × width, of floats with black at 0 and white at 1, uint8 or uint16; such a tensor, whose channels may
            come first; a Pillow image, which is read as its file would be; or the path of a file (PNG, JPEG, TIFF, WebP, and .npy with a range), which
            the program reads. In a task whose measurement is no picture, such as phase_retrieval, the values of A(x) as floats, channels first.
        task: what degraded the pictures, such as "super_resolution", "denoise", "inpaint", "gaussian_deblur", "motion_deblur", "jpeg".
        operator: of ddiff.operator, in place of a task. y then has its shape and unit, and sigma the unit of y.
        sigma: standard deviation of the noise, 0 to 1, in the program's unit, in which black is -1 and white is 1: twice that of values from 0 to 1.
            "auto" estimates it. Default: 0.05.
        method, preset, steps, solver: see `ddiff methods`. "auto" chooses the best known for the task. A schedule is a list: {"lambda": [8, 4, 1]}.
        seed: of every random draw.
        mask: of inpaint and box or random inpainting, height × width: bright or True is observed; or a list of them, one for each picture.
        mask_shows: what bright or True shows: "kept" or "lost"; by default kept, and a mask that looks inverted is an error.
        kernel: of a blur, a square. kernel_form: "psf", the image of a point of light, or "correlation", as torch.nn.functional.conv2d has it.
            Default: "psf", and what an operator of your own takes.
        range: the values of black and white in y, in place of 0 and 1.
        photons: mean photon count of a white pixel: shot noise beside sigma.
        keep_observed: keep the observed pixels as they are. Default: in inpaint.
        states: steps after which x_t is kept, 0 is the start; or a number k, for every k-th step.
        progress: is called with the steps that were made, and the number of steps of the batch.
        params: parameters of the task, such as factor=4 or std=5; see `ddiff tasks`.

        Pictures of one shape are solved in one batch, up to that of the session. KeyboardInterrupt stops the solver within a step; the session
        goes on. Raises RestoreError for what is wrong with settings or pictures, and ProcessError if the program has ended.
        """
        if (task == "") == (operator is None):
            raise RestoreError("give a task or an operator, one of them")
        if range is not None and len(range) != 2:
            raise RestoreError(f"range={range}: give the values of black and white, two numbers")
        several = isinstance(y, (list, tuple)) or dimensions(y) == (len(operator.shape) if operator else 3) + 1
        seen = operator is None and task.lower() != _NO_PICTURE
        arrays: list[Any] = []
        header: dict[str, Any] = {
            "task": task, "params": {k: float(v) for k, v in params.items()}, "method": method, "preset": preset, "steps": steps, "seed": seed,
            "solver": {k: v if np.isscalar(v) else " ".join(str(float(x)) for x in v) for k, v in (solver or {}).items()}, "progress": progress is not None,
            "pictures": [described(p, arrays, upright=seen, scaled=seen and range is None) for p in (y if several else [y])],
        }  # fmt: skip
        if several and _one_each(mask):
            if len(mask) != len(header["pictures"]):
                raise RestoreError(f"mask: {len(mask)} masks for {len(header['pictures'])} pictures; give one mask, or one for each picture")
            header["masks"] = [described(m, arrays, mask=True) for m in mask]
        elif mask is not None:
            header["mask"] = described(mask, arrays, mask=True)
        if kernel is not None:
            header["kernel"] = described(kernel, arrays)
        header["mask_shows"], header["kernel_form"] = mask_shows, kernel_form
        for name, value in ("sigma", sigma), ("photons", photons), ("range", None if range is None else list(range)), ("keep_observed", keep_observed):
            if value is not None:
                header[name] = value
        if np.isscalar(states):
            header["states"] = f"every {states}" if states else ""
        else:
            header["states"] = ",".join(str(int(step)) for step in states)
        if operator:
            header["operator"] = str(operator.path.absolute())
        if several and not header["pictures"]:
            return []
        results, problems = self._exchange(header, arrays, progress)
        found = [results.get(i) for i in np.arange(len(header["pictures"])).tolist()]
        if problems:
            i, text = min(problems.items())
            if several and i >= 0:
                others = f"; and {len(problems) - 1} more, see problems" if len(problems) > 1 else ""
                raise RestoreError(f"picture {i}: {text}{others}", found, problems)
            raise RestoreError(text, found if several else None)
        return found if several else found[0]

    def close(self) -> None:
        """Ends the program."""
        self._requests.put(None)  # its input ends, and so does an idle program
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(
        self, header: dict[str, Any], arrays: list[Any], progress: Callable[[int, int], None] | None
    ) -> tuple[dict[int, Result], dict[int, str]]:
        if os.getpid() != self._pid:
            raise ProcessError("the session belongs to the process from which this one was forked; open another session")
        if self._owner == threading.get_ident():
            raise RuntimeError("a progress function cannot use its own session")
        results: dict[int, Result] = {}
        problems: dict[int, str] = {}
        with self._lock:
            self._owner = threading.get_ident()
            try:
                self._last += 1
                request = self._last
                text = json.dumps({"id": request, **header}, allow_nan=False, default=lambda number: number.item())
                self._requests.put([f"\n{text}\n".encode(), *arrays])
                try:
                    while not self._answer(self._next(), results, problems, progress):
                        pass
                except ProcessError:
                    raise
                except BaseException:  # of Ctrl-C, or of progress
                    self._cancel(request)
                    raise
            finally:
                self._owner = 0
        return results, problems

    def _answer(
        self, answer: tuple[dict[str, Any], np.ndarray | None, bytes], results: dict[int, Result], problems: dict[int, str],
        progress: Callable[[int, int], None] | None,
    ) -> bool:  # fmt: skip
        head, image, png = answer
        if head.get("done"):
            if "error" in head:
                problems[-1] = _translated(head["error"])
            return True
        index = head.get("index", 0)
        if "error" in head:
            problems[index] = _translated(head["error"])
        elif image is not None:
            results[index] = _result(head, image, png)
        elif progress is not None:
            progress(head.get("step", 0), head["steps"])
        return False

    def _cancel(self, request: int) -> None:
        """Ends a request. A second Ctrl-C ends the program."""
        try:
            self._requests.put([f'\n{{"cancel":{request}}}\n'.encode()])
            while True:
                head = self._next()[0]
                if head.get("done") and head.get("id") == request:
                    return
        except ProcessError:
            pass
        except BaseException:
            self._process.kill()
            raise

    def _next(self) -> tuple[dict[str, Any], np.ndarray | None, bytes]:
        answer = self._answers.get()
        if answer is not None:
            return answer
        self._answers.put(None)  # for the next call
        code = self._process.wait()
        self._listener.join(5)
        last = self._said[-1].removeprefix("ddiff: ") if self._said else "it said nothing"
        raise ProcessError(f"ddiff ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}: {last}")

    def _thread(self, run: Callable[[Any], None], pipe: Any) -> threading.Thread:
        t = threading.Thread(target=run, args=(pipe,), daemon=True)
        t.start()
        return t

    def _read(self, pipe: IO[bytes]) -> None:
        try:
            while line := pipe.readline():
                head, image, png = json.loads(line), None, b""
                if shape := head.get("image"):
                    image = _array(pipe, shape)
                    png = pipe.read(head.get("png", 0))
                    head["states"] = {step: _array(pipe, shape) for step in head.get("states", [])}
                self._answers.put((head, image, png))
        except EOFError:
            pass
        finally:
            self._answers.put(None)

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            while (parts := self._requests.get()) is not None:
                for part in parts:
                    pipe.write(memoryview(part).cast("B"))
                pipe.flush()
            pipe.close()
        except OSError:
            pass  # the program has ended, as _read notices

    def _listen(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            if text := line.decode(errors="replace").rstrip():
                self._said.append(text)


def _array(pipe: IO[bytes], shape: list[int]) -> np.ndarray:
    a = np.empty(shape, "<f4")
    if pipe.readinto(memoryview(a).cast("B")) < a.nbytes:  # type: ignore[attr-defined]
        raise EOFError
    return a


def _one_each(mask: Any) -> bool:
    """Reports whether a mask is several ones: a list of them, or an array with one dimension more."""
    if isinstance(mask, (list, tuple)):
        return not mask or isinstance(mask[0], (str, os.PathLike)) or hasattr(mask[0], "getbands") or dimensions(mask[0]) >= 2
    return dimensions(mask) >= 3 and len(mask) > 1


def _translated(text: str) -> str:
    for old, new in _NAMES.items():
        text = text.replace(old, new)
    return re.sub(r"read measurement array\d+: ", "", text)


def _result(head: dict[str, Any], image: np.ndarray, png: bytes) -> Result:
    record = head["result"]
    return Result(
        image=np.clip(image, 0, 1), method=record["item"]["method"], choice=record["item"].get("choice", ""), sigma=record["item"]["sigma"],
        warnings=tuple(Warn(w["code"], w["text"]) for w in record.get("warnings", [])), curves={k: np.array(v) for k, v in head["curves"].items()},
        seconds=record["seconds"], record=record, png=png, states=head["states"],
    )  # fmt: skip


_default: Session | None = None
_opening = threading.Lock()


def restore(y: Picture | Sequence[Picture], task: str = "", **settings: Any) -> Any:
    """Restores degraded pictures with the bundled prior; see Session.restore. The process stays for the next call.

    y: floats of height × width × 3 with black at 0 and white at 1, uint8, uint16, a Pillow image or a path; or a list of them. sigma has the
    program's unit, in which black is -1 and white is 1: twice that of values from 0 to 1.
    """
    global _default
    with _opening:
        if _default is None or _default._pid != os.getpid() or _default._process.poll() is not None:
            _default = Session()
        session = _default
    return session.restore(y, task, **settings)
