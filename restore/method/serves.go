package method

import (
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/restore/prior"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// serves returns ErrSetting, with the reason, if the method refuses a task.
func (i Info) serves(task operator.Definition) error {
	if i.Refuses == nil {
		return nil
	}
	if reason := i.Refuses(task); reason != "" {
		return fmt.Errorf("%w method: %s cannot restore task %s: %s", ErrSetting, i.Name, task.Name, reason)
	}
	return nil
}

// Serves returns ErrSetting if a task makes colours and the prior of this card does not, or a method refuses the task, see [Info.Refuses]: then the message names
// the method, the task, the reason, and the methods of the set that can restore the task with the prior of this card.
func (s Set) Serves(name string, task operator.Definition, c *prior.Card) error {
	m, err := s.Find(name)
	if err != nil {
		return err
	}
	if c != nil && task.Grey && c.Channels == 1 {
		return fmt.Errorf("%w task: %s makes colours, and the prior %s has channels: 1; name the other tasks, or give a prior with channels: 3", ErrSetting, task.Name, c.Name)
	}
	if err = m.Info().serves(task); err == nil {
		return nil
	}
	var able []string
	for _, i := range s.Infos() {
		if i.serves(task) == nil && i.Suits(c) == nil {
			able = append(able, i.Name)
		}
	}
	if len(able) == 0 {
		return fmt.Errorf("%w; no method can", err)
	}
	slices.Sort(able)
	return fmt.Errorf("%w; methods that can: %s", err, strings.Join(able, ", "))
}

// Prepare returns the complete settings of a task with one method, and the operator for an image. given: a mask or a kernel comes from a file.
func (s Set) Prepare(t item.Task, operators operator.Set, given bool, p *prior.Description, image operator.Shape) (out Settings, op *operator.Operator, err error) {
	if out, err = s.Resolve(RequestOf(t), p.Schedule.Steps()); err != nil {
		return out, nil, err
	}
	d, err := operators.Definition(t.Name, given)
	if err != nil {
		return out, nil, err
	}
	if err := s.Serves(t.Method, d, &p.Card); err != nil {
		return out, nil, err
	}
	op, err = operator.Set{d}.New(t.Name, t.Params, image)
	return out, op, err
}

// needsGradient is [Info.Undivided] of the methods with a gradient through the network.
const needsGradient = "needs the gradient of the network"

// loopsGradient is that of methods whose loop keeps the values of one evaluation at a time.
const loopsGradient = needsGradient + " in a loop"

// Kept returns the number of evaluations of the network whose values a step of these settings keeps for a gradient. It is 0 for a method
// without a gradient through the network.
func (i Info) Kept(s Settings) int {
	switch {
	case i.Undivided == loopsGradient:
		return 1
	case i.Undivided != needsGradient:
		return 0
	case i.PerStep == "":
		return 1
	}
	return int(s.Number(i.PerStep))
}

// Undivided returns the first of the named methods with [Info.Undivided], and its value. Both are empty if there is none. Unknown names
// are skipped.
func (s Set) Undivided(names []string) (name, reason string) {
	for _, name := range names {
		if m, err := s.Find(name); err == nil && m.Info().Undivided != "" {
			return name, m.Info().Undivided
		}
	}
	return "", ""
}

// Tiled returns ErrSetting, with the reason, if a method cannot restore images in tiles.
func (i Info) Tiled() error {
	reason := i.Undivided
	if i.Latent {
		reason = "works on latents"
	}
	if reason == "" {
		return nil
	}
	return fmt.Errorf("%w method: %s cannot restore images in tiles: it %s; remove tile, or choose another method", ErrSetting, i.Name, reason)
}

// Tile makes the network of the run predict in tiles, which are fused at every evaluation. All other parts of a step work on the whole image.
// Images of one tile are not divided. It returns ErrSetting for a method that cannot do it, and prior.ErrTiling.
func (r *Run) Tile(t prior.Tiling) error {
	multiple := r.Prior.Card.MultipleOf
	if err := t.Validate(multiple); err != nil {
		return err
	}
	if image := r.Operator.Image; t.Divides(image.Height, image.Width) {
		if err := r.Info.Tiled(); err != nil {
			return err
		}
		var err error
		r.grid, err = prior.NewGrid(t, image.Height, image.Width, multiple)
		return err
	}
	return nil
}

// Grid is the division of the images into tiles, nil for images that are not divided.
func (r *Run) Grid() *prior.Grid { return r.grid }
