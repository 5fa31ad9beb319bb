package restore

import (
	"errors"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/solver"
	"ddiff/restore/method"
)

const (
	// activationFactor is the number of float32 values of memory per pixel and channel of the network's width. On the CPU
	// the bundled prior takes 1.75 kB per pixel (6 channels per pixel) beside its weights, a network of the FFHQ
	// architecture 28 to 45 kB (128 channels), and the factor leads to 2.3 kB and 49 kB.
	activationFactor = 96
	// denseCopies is the number of copies of an operator's constant matrices in memory: 11 while a solver is compiled, and
	// those of cached solvers and operators.
	denseCopies = 44
	// ownShare is the memory for an operator file divided by that of all its values and those of its gradient, some of which give way to others: 0.43 to
	// 0.58 for stacks of convolutions.
	ownShare    = 0.7
	float32Size = 4
	// unknownBytes is the memory of an operator file with values of unknown size: more than any machine has.
	unknownBytes = 1 << 60
	// gradientCopies is the memory of a gradient through the network beside that of an evaluation, divided by the size of the values that
	// the network computes: 0.92 was measured for one evaluation of the bundled prior, 0.75 for each of three.
	gradientCopies = 1.05
	// weightCopies is the number of copies of the weights in a stream: those of the file, and those in the layout of the kernels.
	weightCopies = 2
	// wholeCopies is the number of copies of an image in memory, beside the network and the operator, while it is solved in tiles: tensors
	// of the state, measurement, noise and intermediate values of the step, and the arrays of the result. stateCopies and drawCopies are
	// those of each tensor of the state, and of each draw of noise.
	wholeCopies = 28
	stateCopies = 4
	drawCopies  = 3
	// evaluationCopies is that of each evaluation of the network in a step after the first, whose part of the step is a session of its own: 6 were measured.
	evaluationCopies = 7
	// spectrumCopies is the number of copies of the spectrum of a channel, for operators that compute one channel's after another: 40
	// were measured for images of three channels.
	spectrumCopies = 46
)

// Memory estimates the host's memory for solving a batch of n images, in bytes, beside the network's weights. It is an upper
// bound for the measured networks, at most twice their memory. A latent prior needs that of its network at the size of latents, and
// as much again per channel of its autoencoder at the size of images. An operator file needs 0.7 times that of all its values, of those of its
// gradient and of work spaces, a gradient through the network 1.05 times the size of those of the evaluations that it passes.
// Memory grows linearly with the pixels, and with the square of the sides for operators with constant matrices. A GPU has
// the images in its own memory. Each stream of a batch after the first adds its
// copy of the weights. Methods whose steps have inner iterations with noise need the host's memory for it on any
// provider. For an image in tiles the network needs the memory of a tile, and the rest of a step grows with the pixels of the image.
func (e *Engine) Memory(p Plan, n int) int64 {
	var info method.Info // that of no method if the engine does not know the plan's
	if m, err := e.cfg.Methods.Find(p.Solver.Method); err == nil {
		info = m.Info()
	}
	h, w := float64(p.Image.Height), float64(p.Image.Width)
	need := denseCopies * float32Size * e.operators(p).Known(p.Task).Constants(p.Image)
	if p.Divided() {
		need += e.whole(p, info) * float64(n)
	}
	if streams := len(e.prior.Streams(e.RuntimeFor(p), n, e.Build(p).Streams, p.Image.Height, p.Image.Width)); streams > 1 {
		need += float64((streams - 1) * weightCopies * float32Size * e.prior.Parameters())
	}
	if !e.rt.GPU() {
		dims := e.prior.Space().Dims(p.Image.Dims(n))
		values := float64(e.prior.Width())*float64(dims[2]*dims[3]) + float64(e.prior.StageWidth())*h*w
		if p.Divided() { // one tile at a time
			th, tw := p.Network()
			values = float64(e.prior.Width()) * float64(th*tw) / float64(n)
		}
		if op, err := e.Operator(p); err == nil && p.Own != nil {
			bytes, err := op.Bytes()
			if errors.Is(err, infer.ErrShape) {
				bytes = unknownBytes
			}
			need += ownShare * bytes * float64(n) // 0 for an outline
		}
		need += activationFactor * float32Size * values * float64(n)
		if kept := info.Kept(p.Solver); kept > 0 {
			need += gradientCopies * float32Size * float64(kept) * e.prior.Values(dims[2], dims[3]) * float64(n)
		}
	}
	return int64(need) + solver.NoiseBytes(info, p.Solver, e.prior.Space().Dims(p.Image.Dims(1)), n)
}

// whole estimates the memory for one image that is solved in tiles: all that grows with its pixels, except for the operator's.
func (e *Engine) whole(p Plan, info method.Info) float64 {
	copies := wholeCopies + stateCopies*len(info.State) + drawCopies*len(info.Draws) + evaluationCopies*(info.StepEvaluations(p.Solver)-1)
	values := copies * p.Image.Size()
	if op, err := e.Operator(p); err == nil {
		values += spectrumCopies*op.Spectrum() + op.Copies()*p.Image.Size()
	}
	return float64(float32Size * values)
}
