package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/restore/onnx"
)

// The campaign with a native hang: the prior has an endless loop at late steps, which the preflight does not reach. A
// campaign with a sound prior runs beside it.
const (
	hangImages   = 2
	hangInnocent = 8
	hangTime     = 300 // the prior loops below this time index of 0..999
	hangLimit    = 4 * time.Minute
	// hangTimeout is the limit of the first step of a batch.
	hangTimeout = 10 * time.Second
)

// hangingPrior is the file of a prior that predicts a tenth of the image as noise, and never returns at late steps.
func hangingPrior() ([]byte, error) {
	g := onnx.NewGraph(onnx.DefaultOpset)
	x, t := g.Input("x", onnx.Float, -1, 3, -1, -1), g.Input("t", onnx.Int64, -1)
	// The number of iterations is 0 at early steps, and 10¹⁵ at late ones.
	first := g.Apply("ReduceMin", onnx.Int64, []int{1}, map[string]any{"keepdims": 1}, t)
	late := g.Clip(g.Minus(g.Scalar(hangTime), g.Cast(first, onnx.Float)), 0, 1)
	trip := g.Cast(g.Mul(late, g.Scalar(1e15)), onnx.Int64)
	final, _ := g.Loop(trip, []onnx.Value{x}, func(b *onnx.Graph, _ onnx.Value, state []onnx.Value) (next, collect []onnx.Value) {
		return []onnx.Value{b.Mul(state[0], b.Scalar(0.999))}, nil
	})
	g.Output("eps", g.Mul(final[0], g.Scalar(0.1)))
	data, err := g.Marshal("hanging")
	if err != nil {
		return nil, err
	}
	card := &onnxpb.ModelProto{}
	for _, e := range [][2]string{
		{"card", "1"}, {"name", "hanging"}, {"prediction", "epsilon"}, {"schedule", "linear:1e-4:0.02:1000"}, {"range", "-1..1"},
		{"channels", "3"}, {"multiple_of", strconv.Itoa(8)}, {"learned_variance", "false"}, {"license", "CC0-1.0"},
	} {
		card.MetadataProps = append(card.MetadataProps, &onnxpb.StringStringEntryProto{Key: "ddiff." + e[0], Value: e[1]})
	}
	// Encoded messages that follow each other are one message.
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(data, card)
}

// runHang runs a campaign whose prior hangs beside a sound one. Exactly the items of the first are dead.
func runHang(ctx context.Context, o chaosOptions, dir string, say func(format string, args ...any)) (f figures, err error) {
	defer caught(&err)
	ctx, cancel := context.WithTimeout(ctx, hangLimit)
	defer cancel()
	plans := try(drawPlans(ctx, o))
	file := filepath.Join(dir, "hanging.onnx")
	data := try(hangingPrior())
	check(errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(file, data, 0o644)))
	hanging := plan{name: "hanging", images: map[string][]byte{}, tasks: tasks[3:], steps: 20, prior: file}
	innocent := plan{name: "innocent", images: map[string][]byte{}, tasks: tasks[3:], steps: 20, prior: plans.sound.prior}
	for i := range hangInnocent {
		name := fmt.Sprintf("shard-%04d.png", i)
		innocent.images[name] = plans.sharding.images[name]
		if i < hangImages {
			hanging.images["poison-"+name] = plans.sharding.images[name]
		}
	}
	c, fleet, stop, err := startPoison(ctx, o, dir, say, "--batch", strconv.Itoa(poisonBatch), "--stage-timeout", "solve="+hangTimeout.String())
	defer stop()
	check(err)
	ids := map[string]plan{}
	for _, p := range []plan{hanging, innocent} {
		id := try(submitPlan(ctx, c, p, dir))
		ids[id] = p
	}
	var problems []error
	for id, p := range ids {
		of, err := poisonDead(ctx, c, id, p, say)
		f.add(of)
		problems = append(problems, err)
	}
	say("worker processes restarted: %d", fleet.revivals)
	return f, errors.Join(problems...)
}
