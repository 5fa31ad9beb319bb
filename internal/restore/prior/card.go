package prior

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"ddiff/internal/failure"
)

// ErrSize: the network takes images of one size only, and not this one.
var ErrSize = failure.New(failure.Prior, "size of images")

// ErrCard: the model card is missing, incomplete or contradicts the graph.
var ErrCard = failure.New(failure.Prior, "model card")

// Prediction is the quantity that a network predicts.
type Prediction string

// The prediction types, with z the estimate of the clean image. Networks of flow times and of noise levels have others, see [Card.Predicts].
const (
	Epsilon  Prediction = "epsilon"  // z = (x_t − √(1−ᾱ)·ε)/√ᾱ
	Sample   Prediction = "sample"   // z itself
	Velocity Prediction = "velocity" // z = √ᾱ·x_t − √(1−ᾱ)·v
)

// Card is the model card: metadata entries with the prefix "ddiff.".
type Card struct {
	Name       string     // ddiff.name
	Prediction Prediction // ddiff.prediction, of the network in the file
	Schedule   string     // ddiff.schedule, "linear:β_first:β_last:steps", see ParseSchedule
	Timestep   string     // ddiff.timestep, informative: "int64 index 0..999"
	Range      string     // ddiff.range, "-1..1"
	Channels   int        // ddiff.channels: 1 or 3
	MultipleOf int        // ddiff.multiple_of, divides both image sides
	// LearnedVariance: the output has twice the channels, of which Predict drops the second half.
	LearnedVariance bool   // ddiff.learned_variance
	License         string // ddiff.license
	// Size is the side of the images for which the network was trained, in pixels; 0: not stated.
	Size     int    `json:",omitempty"` // ddiff.size, optional
	Training string // ddiff.training, optional
	// Fixed is the height and width of the only images that the file's graph takes; 0: any multiple of MultipleOf.
	Fixed [2]int `json:",omitzero"`
	// Latent is nil for a prior that works on pixels. Otherwise the card is that of a bundle.
	Latent *Latent `json:",omitempty"`
}

// DefaultSize is the size of images for which a prior is meant whose card states none: that of the published networks.
const DefaultSize = 256

// TileSide is the side of the tiles into which larger images are divided where a campaign leaves the choice to the prior: its size, rounded up
// to a multiple, or that of the only images that it takes.
func (c Card) TileSide() int {
	if side := max(c.Fixed[0], c.Fixed[1]); side > 0 {
		return side
	}
	return (cmp.Or(c.Size, DefaultSize) + c.MultipleOf - 1) / c.MultipleOf * c.MultipleOf
}

// Takes returns ErrSize if the network does not take images of a size in pixels, or their tiles with a side, 0 for images that are not divided.
func (d Description) Takes(height, width, tile int) error {
	if tile > 0 {
		height, width = min(height, tile), min(width, tile)
	}
	h, w := d.Card.Fixed[0], d.Card.Fixed[1]
	if h == 0 && w == 0 || height == cmp.Or(h, height) && width == cmp.Or(w, width) {
		return nil
	}
	text, remedy := fmt.Sprintf("%d×%d", w, h), "export it with free sides"
	if h == w {
		remedy = fmt.Sprintf("use --tile %d, or size %d of a campaign", h, h)
	}
	if height < h || width < w {
		remedy += ", and no smaller images"
	}
	return fmt.Errorf("prior %s: %w: it takes images of %s only, not of %d×%d; %s", d.File, ErrSize, text, width, height, remedy)
}

const keyPrefix = "ddiff."

// required lists the required keys with an example value each, in the order of error messages.
var required = []struct{ key, example string }{
	{"card", "1"},
	{"name", "my-prior"},
	{"prediction", "epsilon"},
	{"schedule", "linear:1e-4:0.02:1000"},
	{"range", "-1..1"},
	{"channels", "3"},
	{"multiple_of", "8"},
	{"learned_variance", "false"},
	{"license", "CC-BY-4.0"},
}

// Keys returns the keys of a card without their prefix, those that it must have and the others.
func Keys() (must, may []string) {
	for _, r := range required {
		must = append(must, r.key)
	}
	return must, []string{"timestep", "training", "size"}
}

// ParseCard parses the card in a model's metadata. ErrCard lists all missing keys with the command that adds them, or
// names the first invalid value.
func ParseCard(file string, metadata map[string]string) (Card, error) {
	var missing, set []string
	for _, r := range required {
		if strings.TrimSpace(metadata[keyPrefix+r.key]) == "" {
			missing = append(missing, r.key)
			set = append(set, fmt.Sprintf("--set %s=%s", r.key, r.example))
		}
	}
	if len(missing) > 0 {
		return Card{}, fmt.Errorf("%s: %w lacks %s; add it with: ddiff prior card %s %s",
			file, ErrCard, strings.Join(missing, ", "), shellQuote(file), strings.Join(set, " "))
	}
	get := func(key string) string { return strings.TrimSpace(metadata[keyPrefix+key]) }
	invalid := func(key, want string) error {
		return fmt.Errorf("%s: %w: %s is %q, %s; set it with: ddiff prior card %s --set %s=VALUE", file, ErrCard, key, get(key), want, shellQuote(file), key)
	}
	c := Card{
		Name: get("name"), Prediction: Prediction(get("prediction")), Schedule: get("schedule"),
		Timestep: get("timestep"), Range: get("range"), License: get("license"), Training: get("training"),
	}
	if get("card") != "1" {
		return Card{}, invalid("card", "must be 1")
	}
	if problem := c.Prediction.problem(c.Schedule); problem != "" {
		return Card{}, invalid("prediction", problem)
	}
	if _, err := ParseSchedule(c.Schedule); err != nil {
		return Card{}, invalid("schedule", err.Error())
	}
	if c.Range != "-1..1" {
		return Card{}, invalid("range", "only -1..1 is supported")
	}
	var err error
	if c.Channels, err = strconv.Atoi(get("channels")); err != nil || c.Channels != 1 && c.Channels != 3 {
		return Card{}, invalid("channels", "must be 1, for grey images, or 3, for red, green and blue")
	}
	if c.MultipleOf, err = strconv.Atoi(get("multiple_of")); err != nil || c.MultipleOf < 1 || c.MultipleOf > 1024 {
		return Card{}, invalid("multiple_of", "must be an integer in 1..1024")
	}
	if size := get("size"); size != "" {
		if c.Size, err = strconv.Atoi(size); err != nil || c.Size < 16 || c.Size > 4096 {
			return Card{}, invalid("size", "must be an integer in 16..4096")
		}
	}
	if c.LearnedVariance, err = strconv.ParseBool(get("learned_variance")); err != nil {
		return Card{}, invalid("learned_variance", "must be true or false")
	}
	if c.LearnedVariance && c.Continuous() {
		return Card{}, invalid("learned_variance", "must be false for a schedule that starts with flow or sigma")
	}
	return c, nil
}

// shellQuote quotes a file name for a shell where needed.
func shellQuote(name string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+,@", r)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}

// Entries converts KEY=VALUE settings to metadata entries. ErrCard: a setting has another form or an unknown key.
func Entries(settings []string) (map[string]string, error) {
	known := slices.Concat(Keys())
	out := map[string]string{}
	for _, s := range settings {
		k, v, ok := strings.Cut(s, "=")
		if !ok || !slices.Contains(known, k) {
			return nil, fmt.Errorf("%w: setting %q must be KEY=VALUE with one of the keys %s", ErrCard, s, strings.Join(known, ", "))
		}
		out[keyPrefix+k] = v
	}
	return out, nil
}
