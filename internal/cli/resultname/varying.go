package resultname

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"ddiff/coordinator/report/sweep"
)

// Variation finds the properties in which items differ. Readable names contain these and no others, so that they depend
// on the set of items, not on its order. Parameters vary if they differ between items of one task, settings if they
// differ between items of one task and method. Its memory does not grow with the number of items.
type Variation struct {
	items map[string]int // by scope
	seen  map[property]*values
}

// property is a property of items. Its scope is the task of a parameter, task and method of a setting, otherwise empty.
type property struct{ scope, name string }

// values are those of a property.
type values struct {
	first  string
	items  int
	varies bool
}

// The names of the properties of all tasks.
const (
	propertySigma   = "sigma"
	propertyPhotons = "photons"
	propertySize    = "size"
	propertyPrior   = "prior"
	propertyMethod  = "method"
	propertySeed    = "seed"
)

func taskScope(c sweep.Cell) string   { return c.Task + "\x00" }
func methodScope(c sweep.Cell) string { return c.Task + "\x00" + c.Method }

// Add notes the properties of an item.
func (v *Variation) Add(c sweep.Cell, seed string) {
	if v.seen == nil {
		v.items, v.seen = map[string]int{}, map[property]*values{}
	}
	v.items[""]++
	for _, p := range []struct{ name, value string }{
		{propertySigma, sigmaText(c)}, {propertyPhotons, photons(c)}, {propertySize, c.Size}, {propertyPrior, c.Prior}, {propertyMethod, c.Method}, {propertySeed, seed},
	} {
		v.note(property{"", p.name}, p.value)
	}
	for scope, list := range map[string]string{taskScope(c): c.Params, methodScope(c): settingsOf(c)} {
		v.items[scope]++
		for a := range strings.SplitSeq(list, ";") {
			name, value, _ := strings.Cut(a, "=")
			v.note(property{scope, name}, value)
		}
	}
}

func (v *Variation) note(p property, value string) {
	known := v.seen[p]
	if known == nil {
		known = &values{first: value}
		v.seen[p] = known
	}
	known.items++
	known.varies = known.varies || value != known.first
}

// vary reports whether items differ in a property, or some lack it.
func (v *Variation) vary(scope, name string) bool {
	known := v.seen[property{scope, name}]
	return known != nil && (known.varies || known.items < v.items[scope])
}

// Tail returns what follows the name of an image in a readable name: the task, the varying properties, and the method
// if it varies or is wanted. It has at most tailBytes.
func (v *Variation) Tail(c sweep.Cell, seed string, method bool) string {
	parts := []string{Safe(c.Task)}
	parts = append(parts, v.varying(taskScope(c), c.Params)...)
	if v.vary("", propertySigma) {
		parts = append(parts, "sigma="+sigmaText(c))
	}
	if text := photons(c); text != "" && v.vary("", propertyPhotons) {
		parts = append(parts, "photons="+text)
	}
	if v.vary("", propertySize) && c.Size != "" {
		parts = append(parts, strings.ReplaceAll(c.Size, " ", "."))
	}
	if v.vary("", propertyPrior) {
		parts = append(parts, "prior="+c.Prior[:min(8, len(c.Prior))])
	}
	parts = append(parts, v.varying(methodScope(c), settingsOf(c))...)
	if method || v.vary("", propertyMethod) {
		parts = append(parts, c.Method)
	}
	if v.vary("", propertySeed) {
		parts = append(parts, "seed="+seed)
	}
	return shorten(strings.Join(parts, "."))
}

// varying returns the varying assignments of a list.
func (v *Variation) varying(scope, list string) []string {
	var out []string
	for a := range strings.SplitSeq(list, ";") {
		name, _, _ := strings.Cut(a, "=")
		if name != "" && v.vary(scope, name) {
			out = append(out, a)
		}
	}
	return out
}

// tailBytes is the longest part of a file name that task and varying properties make.
const tailBytes = 100

// shorten makes a safe part of a file name. It replaces the end of a long text by a digest of the whole.
func shorten(text string) string {
	if len(text) <= tailBytes {
		return Safe(text)
	}
	sum := sha256.Sum256([]byte(text))
	const digits = 8
	cut := text[:tailBytes-1-digits]
	return Safe(strings.ToValidUTF8(cut, "")) + "~" + hex.EncodeToString(sum[:digits/2])
}

// settingsOf returns the settings of a cell. A noise level that is the item's sigma, as it is by default, does not vary beside it.
func settingsOf(c sweep.Cell) string {
	list := strings.Split(c.Settings, ";")
	if i := slices.Index(list, "noise_std="+sigmaText(c)); i >= 0 {
		list[i] = "noise_std=" + propertySigma
	}
	return strings.Join(list, ";")
}

func sigmaText(c sweep.Cell) string { return c.Sigma.String() }

// photons is empty without the noise of photons.
func photons(c sweep.Cell) string {
	if c.Photons == 0 {
		return ""
	}
	return strconv.FormatFloat(c.Photons, 'g', -1, 64)
}

// noiseText names the noise, without photons as sigmaText does.
func noiseText(c sweep.Cell) string {
	if text := photons(c); text != "" {
		return sigmaText(c) + " " + text
	}
	return sigmaText(c)
}

// Cells names cells as folders or runs: task, varying properties, method. The names are different on every file
// system. They do not depend on the order of the cells.
func Cells(cells []sweep.Cell) []string {
	var v Variation
	for _, c := range cells {
		v.Add(c, "")
	}
	names := make([]string, len(cells))
	count := map[string]int{}
	for i, c := range cells {
		names[i] = v.Tail(c, "", true)
		count[Fold(names[i])]++
	}
	for i, c := range cells {
		if count[Fold(names[i])] > 1 { // in upper and lower case
			sum := sha256.Sum256([]byte(strings.Join(slices.Concat([]string{c.Task, c.Params, noiseText(c), c.Size, c.Method, c.Prior, c.Settings}), "\x00")))
			names[i] += "~" + hex.EncodeToString(sum[:4])
		}
	}
	return names
}
