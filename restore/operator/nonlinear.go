package operator

import (
	"errors"
	"fmt"
	"math"

	"ddiff/restore/onnx"
)

// nonlinear is the blur of a camera: motion blurs linear light, the sensor saturates, and
// the display curve is applied afterwards.
//
//	p = clip(v/2 + 1/2, 0, 1)           stored value
//	l = (p·D + c^(1/γ))^γ − c           linear light, D = (1+c)^(1/γ) − c^(1/γ)
//	s = clip(gain·(k ⋆ l), 0, 1)        exposure with saturation
//	y = 2·((s + c)^(1/γ) − c^(1/γ))/D − 1
//
// The toe c keeps the display curve differentiable at black.
type nonlinear struct {
	motion
	gain, gamma, toe float64
}

func nonlinearTask() task {
	return task{
		name: NonlinearDeblur, about: "motion blur in linear light, saturation, display curve",
		defaults: map[string]float64{"size": 31, "intensity": 0.5, "gain": 1.2, "gamma": 2.2, "toe": 0.01},
		make: func(s Shape, p map[string]float64) (definition, error) {
			err := errors.Join(positive(p, "gain", 8), positive(p, "gamma", 4), positive(p, "toe", 0.5))
			if err != nil {
				return nil, err
			}
			if p["gamma"] < 1 {
				return nil, fmt.Errorf("%w gamma: %g is below 1", ErrParam, p["gamma"])
			}
			m, err := newMotion(s, p)
			if err != nil {
				return nil, err
			}
			return &nonlinear{*m, p["gain"], p["gamma"], p["toe"]}, nil
		},
	}
}

func (o *nonlinear) forward(g *onnx.Graph, x, p onnx.Value) onnx.Value {
	root := math.Pow(o.toe, 1/o.gamma)
	span := math.Pow(1+o.toe, 1/o.gamma) - root
	scalar := func(v float64) onnx.Value { return g.Scalar(float32(v)) }

	stored := g.Clip(g.Add(g.Mul(x, scalar(0.5)), scalar(0.5)), 0, 1)
	light := g.Minus(g.Pow(g.Add(g.Mul(stored, scalar(span)), scalar(root)), float32(o.gamma)), scalar(o.toe))
	exposed := g.Clip(g.Mul(o.filter.apply(g, light, p), scalar(o.gain)), 0, 1)
	curve := g.Pow(g.Add(exposed, scalar(o.toe)), float32(1/o.gamma))
	return g.Minus(g.Mul(curve, scalar(2/span)), scalar(1+2*root/span))
}
