package onnx

import (
	"math"

	"ddiff/restore/onnx/infer"
)

// softmaxRule builds y·(dy − Σ dy·y).
func softmaxRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	return g.softmaxGradient(n.Outputs[0], dy, infer.Axis(n.Integer("axis", -1), dy.Rank())), nil
}

func (g *Graph) softmaxGradient(y, dy Value, axis int) Value {
	return g.Mul(y, g.Minus(dy, g.ReduceSum(g.Mul(dy, y), axis)))
}

// logSoftmaxRule builds dy − exp(y)·Σ dy.
func logSoftmaxRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	sum := g.ReduceSum(dy, infer.Axis(n.Integer("axis", -1), dy.Rank()))
	return g.Minus(dy, g.Mul(g.Exp(n.Outputs[0]), sum)), nil
}

// attentionRule builds the gradients of query, key and value of Attention without a cache, with as many heads of keys and
// values as of queries. A mask is a constant that is added.
func attentionRule(g *Graph, n *infer.Node, k int, dy Value) (Value, error) {
	for _, name := range []string{"is_causal", "qk_matmul_output_mode"} {
		if v := n.Integer(name, 0); v != 0 {
			return Value{}, n.Refuse("%s %d", name, v)
		}
	}
	if c := n.Float("softcap", 0); c != 0 {
		return Value{}, n.Refuse("softcap %g", c)
	}
	mask := n.Input(3)
	switch {
	case n.Has(4) || n.Has(5) || n.Has(6):
		return Value{}, n.Refuse("a cache of keys and values")
	case k > 2:
		return Value{}, n.Refuse("a mask that depends on the input")
	case mask.Name != "" && mask.DType == Bool:
		return Value{}, n.Refuse("a mask of truth values")
	}
	heads := n.Integer("q_num_heads", 0)
	if shared := n.Integer("kv_num_heads", heads); shared != heads {
		return Value{}, n.Refuse("%d heads of keys for %d of queries", shared, heads)
	}
	if heads == 0 && n.Inputs[0].Rank() == 3 {
		return Value{}, n.Refuse("tokens without q_num_heads")
	}
	q, key, v := g.splitHeads(n.Inputs[0], heads), g.splitHeads(n.Inputs[1], heads), g.splitHeads(n.Inputs[2], heads)
	if q.Dims[1] != key.Dims[1] {
		return Value{}, n.Refuse("%d heads of keys for %d of queries", key.Dims[1], q.Dims[1])
	}
	scale := float64(n.Float("scale", float32(1/math.Sqrt(float64(q.Dims[3])))))
	scores := g.MatMul(g.scaled(q, scale), g.transposeLast(key))
	if mask.Name != "" {
		scores = g.Add(scores, mask)
	}
	weights := g.op("Softmax", map[string]any{"axis": -1}, scores)
	dy = g.splitHeads(dy, heads)
	var d Value
	if k == 2 {
		d = g.MatMul(g.transposeLast(weights), dy)
	} else {
		inner := g.softmaxGradient(weights, g.MatMul(dy, g.transposeLast(v)), 3)
		if k == 0 {
			d = g.MatMul(inner, key)
		} else {
			d = g.MatMul(g.transposeLast(inner), q)
		}
		d = g.scaled(d, scale)
	}
	if n.Inputs[k].Rank() == 3 {
		d = g.Reshape(g.Transpose(d, 0, 2, 1, 3), n.Inputs[k].Dims...)
	}
	return d, nil
}

// splitHeads returns tokens [N, L, heads·E] as [N, heads, L, E].
func (g *Graph) splitHeads(v Value, heads int) Value {
	if v.Rank() == 4 {
		return v
	}
	n, length, width := v.Dims[0], v.Dims[1], v.Dims[2]
	return g.Transpose(g.Reshape(v, n, length, heads, width/heads), 0, 2, 1, 3)
}
