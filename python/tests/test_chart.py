import builtins

import pytest

import ddiff

HEADER = "panel,series,x_name,x,y_name,y,low,high,n,image,item\n"
FILES = {
    "sweep": ",ddiff,sigma,0.02,psnr,20,18,22,3,,\n,ddiff,sigma,0.05,psnr,21,,,1,,\n,=other,sigma,0.02,psnr,19,18,20,3,,\n",
    "panels": "σ=0.02,ddiff,steps,10,psnr,20,18,22,3,,\nσ=0.05,ddiff,steps,100,psnr,21,20,22,3,,\n",
    "convergence": ",ddiff,step,1,data_norm,100,90,110,3,,\n,ddiff,step,2,data_norm,9,8,10,3,,\n,ddiff,step,1,psnr,9,8,10,3,,\n",
    "pairs": ",,psnr a,20,psnr b,22,,,,x.png,00\n,,psnr a,21,psnr b,20,,,,y.png,01\n",
    "residual": ",ddiff,psnr,20,residual_ratio,1.2,,,,x.png,00\n,other,psnr,20,residual_ratio,30,,,,NA,01\n",
}


def test_chart(tmp_path):
    pytest.importorskip("matplotlib", reason="needs packages of PyPI: make python-test")
    for name in FILES:
        check(tmp_path, name)


def check(tmp_path, name):
    (tmp_path / "f.csv").write_text(HEADER + FILES[name])
    figure = ddiff.chart(tmp_path / "f.csv")
    figure.savefig(tmp_path / "f.pdf")
    figure.savefig(tmp_path / "f.png")
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF") and (tmp_path / "f.png").stat().st_size > 1000
    wanted = {
        "sweep": (1, 82, "noise level σ", "PSNR (dB)", "linear"), "panels": (2, 174, "solver steps", "PSNR (dB)", "linear"),
        "convergence": (2, 174, "step", "‖y − A(z)‖", "log"), "pairs": (1, 82, "a (dB)", "b (dB)", "linear"),
        "residual": (1, 82, "PSNR (dB)", "residual / noise variance", "log"),
    }[name]  # fmt: skip
    ax = figure.axes[0]
    assert (len(figure.axes), round(25.4 * figure.get_figwidth()), ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == wanted
    points = [xy for line in ax.lines for xy in zip(*line.get_data())]
    for row in FILES[name].splitlines():
        cells = row.split(",")
        if cells[0] in ("", "σ=0.02") and cells[4] != "psnr" or name == "sweep":
            assert (float(cells[3]), float(cells[5])) in points
    if name == "residual":
        assert any(list(line.get_ydata()) == [1, 1] for line in ax.lines)


def test_chart_refused(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"^draw chart: matplotlib is missing; install it"):
        ddiff.chart("f.csv")
    monkeypatch.undo()
    pytest.importorskip("matplotlib", reason="needs packages of PyPI: make python-test")
    (tmp_path / "f.csv").write_text("item,image\n1,2\n")
    with pytest.raises(ValueError, match="no points of a figure"):
        ddiff.chart(tmp_path / "f.csv")
