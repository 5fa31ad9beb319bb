"""Writes sensor.onnx, an operator of one's own: a blur, half the resolution, and a sensor that saturates. See docs/campaigns.md."""

import onnx
import torch
from torch import nn
from torch.nn import functional as F


class Sensor(nn.Module):
    def __init__(self):
        super().__init__()
        line = torch.exp(-torch.linspace(-1.5, 1.5, 7) ** 2)
        kernel = torch.outer(line, line) / line.sum() ** 2
        self.register_buffer("kernel", kernel.expand(3, 1, 7, 7).clone())

    def forward(self, x, gain):
        x = F.pad(x, (3, 3, 3, 3), mode="reflect")
        return torch.tanh(gain * F.conv2d(x, self.kernel, stride=2, groups=3))


torch.onnx.export(
    Sensor(), (torch.zeros(2, 3, 64, 64), torch.tensor(1.0)), "sensor.onnx", opset_version=17,
    input_names=["x", "gain"], output_names=["y"],
    dynamic_axes={"x": {0: "N", 2: "H", 3: "W"}, "y": {0: "N", 2: "H/2", 3: "W/2"}},
)
model = onnx.load("sensor.onnx")
onnx.helper.set_model_props(model, {"ddiff.params.gain": "1; (0, 4]; gain of the sensor"})
onnx.save(model, "sensor.onnx")
