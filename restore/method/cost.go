package method

import "ddiff/restore/onnx"

// Cost counts the work for one image. The zero Cost is none.
type Cost struct {
	// Network counts evaluations of the score network, NetworkBackward the backward passes through it.
	Network         int `json:"network"`
	NetworkBackward int `json:"network_backward"`
	// Operator counts calls of the measurement operator: A(x), and products with its Jacobian, or with U or V of [SVD].
	Operator int `json:"operator"`
	// Autoencoder counts evaluations of encoder and decoder of a latent prior, AutoencoderBackward the backward passes
	// through them.
	Autoencoder         int `json:"autoencoder"`
	AutoencoderBackward int `json:"autoencoder_backward"`
}

// Plus returns the sum of two costs.
func (c Cost) Plus(d Cost) Cost {
	return Cost{
		c.Network + d.Network, c.NetworkBackward + d.NetworkBackward, c.Operator + d.Operator,
		c.Autoencoder + d.Autoencoder, c.AutoencoderBackward + d.AutoencoderBackward,
	}
}

// Times returns the cost of n times the work.
func (c Cost) Times(n int) Cost {
	return Cost{c.Network * n, c.NetworkBackward * n, c.Operator * n, c.Autoencoder * n, c.AutoencoderBackward * n}
}

// tally counts the cost of a step while its graph is built.
type tally struct {
	costs  map[string]Cost // by the flag of [Builder.When], which is empty outside
	passes []pass          // those through which a gradient can go
}

// pass is one evaluation of a function that costs, with the cost of a backward pass through it.
type pass struct {
	in, out  onnx.Value
	backward Cost
}

// pass counts an evaluation of a function at in with the result out.
func (b *Builder) pass(in, out onnx.Value, forward, backward Cost) {
	b.spend(forward)
	b.tally.passes = append(b.tally.passes, pass{in, out, backward})
}

// applied counts an evaluation of the measurement operator, or of a factor of it.
func (b *Builder) applied(in, out onnx.Value) { b.pass(in, out, Cost{Operator: 1}, Cost{Operator: 1}) }

// spend adds to the cost of the part of the step that b builds.
func (b *Builder) spend(c Cost) { b.tally.costs[b.flag] = b.tally.costs[b.flag].Plus(c.Times(b.times)) }

// Gradient adds the vector-Jacobian product Jᵀ·seed of the expression from x to y, see [onnx.Graph.Gradient], and counts the
// backward passes through network, operator and autoencoder.
func (b *Builder) Gradient(y, x, seed onnx.Value) onnx.Value {
	for _, p := range b.tally.passes {
		// The operator of denoise returns its input: no gradient passes through a call of it.
		if p.in.Name != p.out.Name && b.Depends(p.in, x) && b.Depends(y, p.out) {
			b.spend(p.backward)
		}
	}
	return built(b.Graph.Gradient(y, x, seed))
}

// Cost returns the cost of the steps of one image, and of decoding its answer. It counts what the graph of a step computes, with
// the iterations of [Builder.Repeat] and the steps of [Builder.When]. It returns the errors of [Run.Build].
func (r *Run) Cost() (Cost, error) { return r.cost() }

// count builds a step for one image and counts the cost of all steps.
func (r *Run) count() (Cost, error) {
	step, err := r.Build(onnx.NewGraph(r.Prior.Opset()), 1, 0)
	if err != nil {
		return Cost{}, err
	}
	cost := step.costs[""].Times(len(r.Steps))
	delete(step.costs, "")
	for flag, c := range step.costs {
		for _, st := range r.Steps {
			cost = cost.Plus(c.Times(int(st.Scalars[flag])))
		}
	}
	if r.Info.Latent {
		cost.Autoencoder++
	}
	return cost, nil
}
