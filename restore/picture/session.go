// Package picture restores degraded pictures in this process: without a campaign, a queue or a store of results.
//
// [Open] makes a [Session] of a prior and a runtime. [Session.Restore] decodes each picture, estimates its noise if asked to, solves, scores, warns and encodes;
// compiled models stay loaded between calls, and neighbours of equal settings and shape share a batch. Identities and bits are those of a campaign
// with the same settings: what a campaign's worker does with an item, it does with the same packages. Campaigns keep doubted results; a session restores them
// again with another noise level, which is then a setting, and fails those that none explains, see [Config.Unchecked].
package picture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// Config describes a session.
type Config struct {
	// Prior is the score model, Runtime the open runtime, which outlives the session. Required.
	Prior   *prior.Prior
	Runtime *onnxruntime.Runtime
	// Build has the settings of the compilation. Default: by provider.
	Build solver.Build
	// Methods and Operators are those that pictures may name. Default: the built-in ones.
	Methods   method.Set
	Operators operator.Set
	// Memory limits the estimated memory for solving, in bytes. 0: no limit; see [job.SolveMemory].
	Memory int64
	// Large are the tiles of pictures without tiles of their own that need more than Whole bytes, by the estimate of Memory. The zero Large is none.
	Large prior.Tiling
	Whole int64
	// Batch is the largest number of pictures that are solved together. Default: 2 on a processor, else 4.
	Batch int
	// Unchecked: results that do not explain their pictures, or are implausible, are kept as they are.
	Unchecked bool
	// Version of the program for passports.
	Version string
	// Logger receives what OpenVINO does not compute as it should. Default: discard.
	Logger *slog.Logger
	// Progress is called before the first step of a batch, after each step, and within a step after each tile. Optional.
	Progress func(p Progress)
}

// Progress tells how far a batch is.
type Progress struct {
	// Pictures are the indices of the pictures in the arguments of Restore.
	Pictures []int
	// Step of Steps was made, which is Evaluation of Evaluations of the network for each picture.
	Step, Steps, Evaluation, Evaluations int
	// Share of the next step was made, in Tiles tiles.
	Share float64
	Tiles int
	// Item is the first picture, Cost the work for each.
	Item *item.Item
	Cost item.Cost
}

// Result is a restored picture. Its embedded result is what result.json of a campaign has.
type Result struct {
	item.Result
	// PNG is the restored picture with its passport.
	PNG []byte
	// Image is the restored picture before it was rounded and clipped.
	Image *raster.Image
	// Curves of the method, one entry per step.
	Curves item.Trace
	// States are the images after Steps, of item.Task.KeepStates.
	Steps  []int
	States []*raster.Image
	// Doubted says why it was restored again; empty: it was not.
	Doubted string
	// Err is the reason why the picture was not restored; Item then has what is known.
	Err error
}

// Session restores pictures. Create it with Open, and close it. One goroutine at a time uses it.
type Session struct {
	cfg     Config
	engine  *restore.Engine
	loader  job.Loader
	files   files
	verdict verdict // of the last picture
}

// Open verifies the prior and the operator files of the configuration. Errors are those of [restore.OpenEngine] and of [operator.File.Verify].
func Open(ctx context.Context, cfg Config) (*Session, error) {
	if cfg.Prior == nil || cfg.Runtime == nil {
		return nil, errors.New("open a session of pictures: Prior or Runtime is missing")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	engine, err := restore.OpenEngine(ctx, cfg.Runtime, cfg.Prior, restore.Config{Build: cfg.Build, Methods: cfg.Methods, Operators: cfg.Operators}, cfg.Logger)
	if err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, engine: engine, files: files{}}
	s.loader = job.Loader{Engine: engine, Sources: s.files, Verified: true, Budget: raster.NewBudget(job.DecodeMemory()), Memory: cfg.Memory}
	if err := s.Use(ctx, cfg.Operators); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return s, nil
}

// Use replaces the operators that pictures may name, and verifies the files among them that the former ones lack. Errors are those of [operator.File.Verify].
func (s *Session) Use(ctx context.Context, operators operator.Set) error {
	own := map[string]*operator.File{}
	for _, d := range operators {
		f := d.Own
		if f == nil || own[f.SHA256] != nil {
			continue
		}
		if own[f.SHA256] = s.loader.Operators[f.SHA256]; own[f.SHA256] != nil {
			continue
		}
		if err := f.Fits(s.cfg.Prior.Opset(), s.cfg.Prior.Card.Channels); err != nil {
			return err
		}
		if err := f.Verify(ctx, s.cfg.Runtime); err != nil {
			return err
		}
		own[f.SHA256] = f
	}
	s.cfg.Operators, s.loader.Operators = operators, own
	return nil
}

// Close releases the compiled models.
func (s *Session) Close() error { return s.engine.Close() }

// prepared is a picture before the solver.
type prepared struct {
	job.Job
	picture Picture
	at      int // in the arguments of Restore
}

// Restore restores pictures and yields each, with its index, as soon as its batch is finished; what fails is the Err of its own result. The end of the
// context ends the sequence at once, without results for the pictures in work. Pictures with one file, or one mask, should be neighbours.
func (s *Session) Restore(ctx context.Context, pictures ...Picture) iter.Seq2[int, Result] {
	return func(yield func(int, Result) bool) {
		s.engine.Expect(len(pictures))
		var batch []*prepared
		key := ""
		for i, p := range pictures {
			next := &prepared{at: i, picture: p}
			if err := s.prepare(ctx, &next.Job, p); err != nil {
				if ctx.Err() != nil || !yield(i, failed(next, err)) {
					return
				}
				continue
			}
			k, err := next.Plan.Key()
			if err != nil || k != key && !s.solve(ctx, batch, yield) {
				return
			}
			if k != key {
				batch, key = nil, k
			}
			if batch = append(batch, next); len(batch) == cmp.Or(s.cfg.Batch, job.Together(s.engine.Runtime().Provider())) {
				if !s.solve(ctx, batch, yield) {
					return
				}
				batch = nil
			}
		}
		s.solve(ctx, batch, yield)
	}
}

func failed(p *prepared, err error) Result {
	return Result{Result: item.Result{Schema: item.SchemaVersion, Item: p.Item.Public(), Outcome: item.OutcomeFailed, Reason: err.Error()}, Err: err}
}

// prepare plans a picture and reads its measurement.
func (s *Session) prepare(ctx context.Context, j *job.Job, p Picture) (err error) {
	if j.Item, err = s.cfg.item(p, s.files); err != nil {
		j.Item.Name, j.Item.Task, j.Item.Method, j.Item.Choice, j.Item.Run = p.Name, p.Task.Name, p.Task.Method, p.Task.Choice, p.Task.Run
		return err
	}
	if err := s.plan(j); err != nil {
		return err
	}
	if j.Original, _, err = s.files.read("original", p.Original); err != nil {
		return err
	}
	if err := s.loader.Fetch(ctx, j); err != nil {
		return err
	}
	if err := s.loader.Measure(ctx, j); err != nil || s.cfg.Unchecked {
		return err
	}
	if doubt := j.DoubtDraws(); doubt != nil {
		return fmt.Errorf("%w: %s; --unchecked restores it as it is", ErrImplausible, doubt.Finding)
	}
	return nil
}

// Doubt is a line on a card of the prior that is probably wrong, or empty.
func (s *Session) Doubt() string { return s.engine.Doubt }

// Tiles returns the tiles in which a picture is restored, 0 for none. It solves nothing.
func (s *Session) Tiles(p Picture) (side, overlap int, err error) {
	var j job.Job
	if j.Item, err = s.cfg.item(p, s.files); err == nil {
		err = s.plan(&j)
	}
	return j.Item.Tile, j.Item.Overlap, err
}

// plan plans a picture, in tiles if the whole picture needs too much memory.
func (s *Session) plan(j *job.Job) error {
	err := s.loader.Plan(j)
	large := s.cfg.Large
	if err != nil && !errors.Is(err, job.ErrMemory) && !errors.Is(err, prior.ErrSize) || j.Item.Tile > 0 || !large.Divides(j.Item.Height, j.Item.Width) {
		return err
	}
	if err == nil && s.engine.Memory(j.Plan, 1) <= s.cfg.Whole {
		return nil
	}
	divided := &job.Job{Item: j.Item}
	divided.Item.Tile, divided.Item.Overlap = large.Side, large.Overlap
	if err := divided.Item.Identify(); err != nil {
		return err
	}
	if planned := s.loader.Plan(divided); planned != nil && !errors.Is(planned, job.ErrMemory) { // a method without tiles
		return err
	} else if planned != nil {
		return planned
	}
	*j = *divided
	return nil
}

// errEnded ends the sequence of Restore.
var errEnded = errors.New("the sequence has ended")

// solve restores pictures of one plan, and reports whether to go on.
func (s *Session) solve(ctx context.Context, batch []*prepared, yield func(int, Result) bool) bool {
	size := func(left []*prepared) int {
		n := s.loader.Fitting(left[0].Plan, len(left))
		return cmp.Or(min(n, s.cfg.Batch), job.PowerOfTwo(n)) // so that the last pictures compile no further models
	}
	final := func(err error) bool {
		return ctx.Err() != nil || onnxruntime.Unusable(err)
	}
	return job.Parts(batch, size, func(batch []*prepared) error { return s.run(ctx, batch) }, final, func(batch []*prepared, err error) error {
		for _, p := range batch {
			var res Result
			if err != nil {
				res = failed(p, err)
			} else {
				res = s.believed(ctx, p)
			}
			if ctx.Err() != nil || !yield(p.at, res) {
				return errEnded
			}
		}
		return nil
	}) == nil && ctx.Err() == nil
}

// run solves a batch and scores its pictures.
func (s *Session) run(ctx context.Context, batch []*prepared) error {
	jobs := make([]*job.Job, len(batch))
	progress := Progress{Item: &batch[0].Item}
	for i, p := range batch {
		jobs[i] = &p.Job
		progress.Pictures = append(progress.Pictures, p.at)
	}
	report := func(step int, share float64) {
		progress.Step, progress.Share = step, share
		if progress.Evaluation = int(float64(progress.Evaluations) * (float64(step) + share) / float64(progress.Steps)); s.cfg.Progress != nil {
			s.cfg.Progress(progress)
		}
	}
	solving := job.Batch{
		Engine: s.engine, Jobs: jobs,
		Begin: func(c job.Course) {
			progress.Steps, progress.Evaluations, progress.Tiles, progress.Cost = c.Steps, c.Cost.Network, c.Tiles, item.Cost(c.Cost)
			report(0, 0)
		},
		Step: func(step int) error {
			report(step, 0)
			return nil
		},
		Tile: func(share float64) { report(progress.Step, share) },
	}
	if err := solving.Solve(ctx); err != nil {
		return err
	}
	return prior.Beside(len(batch), func(i int) error { return batch[i].Answer(ctx, s.engine) })
}

// finish encodes an answered picture.
func (s *Session) finish(p *prepared) Result {
	res := Result{Result: item.Result{Runtime: item.Runtime{Version: s.cfg.Version}}, Image: p.Restored(), Curves: p.Trace()}
	var err error
	if res.PNG, _, err = p.Encode(s.engine, &res.Result, false); err != nil {
		return failed(p, err)
	}
	res.Steps, res.States = p.States()
	return res
}
