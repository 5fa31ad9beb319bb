package resultname

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"ddiff/coordinator/report/sweep"
)

// Variation finds the properties in which items differ. Readable names contain these and no others, so that they depend
// on the set of items, not on its order. Parameters vary if they differ between items of one task, settings if they
// differ between items of one task and method. Its memory does not grow with the number of items.
type Variation struct {
	items map[string]int     // by scope
	count map[assignment]int // items that have it
}

// assignment is a property with its value, as name=value. The scope is the task of a parameter, task and method of a setting, otherwise empty.
type assignment struct{ scope, text string }

func taskScope(c sweep.Cell) string   { return c.Task + "\x00" }
func methodScope(c sweep.Cell) string { return c.Task + "\x00" + c.Method }

// Add notes the properties of an item.
func (v *Variation) Add(c sweep.Cell, seed string) {
	if v.items == nil {
		v.items, v.count = map[string]int{}, map[assignment]int{}
	}
	for scope, list := range map[string][]string{
		"":             {"sigma=" + c.Sigma.String(), "photons=" + c.PhotonsText(), "size=" + c.Size, "prior=" + c.Prior, "method=" + c.Method, "seed=" + seed},
		taskScope(c):   sweep.Assignments(c.Params),
		methodScope(c): settingsOf(c),
	} {
		v.items[scope]++
		for _, text := range list {
			v.count[assignment{scope, text}]++
		}
	}
}

// vary reports whether some items have another value of a property, or lack it.
func (v *Variation) vary(scope, text string) bool {
	return v.count[assignment{scope, text}] < v.items[scope]
}

// Tail returns what follows the name of an image in a readable name: the task, the varying properties, and the method
// if it varies or is wanted. It has at most tailBytes.
func (v *Variation) Tail(c sweep.Cell, seed string, method bool) string {
	parts := append([]string{Safe(c.Task)}, v.varying(taskScope(c), sweep.Assignments(c.Params))...)
	parts = append(parts, v.varying("", []string{"sigma=" + c.Sigma.String()})...)
	if c.Photons > 0 {
		parts = append(parts, v.varying("", []string{"photons=" + c.PhotonsText()})...)
	}
	if c.Size != "" && v.vary("", "size="+c.Size) {
		parts = append(parts, strings.ReplaceAll(c.Size, " ", "."))
	}
	if v.vary("", "prior="+c.Prior) {
		parts = append(parts, "prior="+sweep.ShortPrior(c.Prior))
	}
	parts = append(parts, v.varying(methodScope(c), settingsOf(c))...)
	if method || v.vary("", "method="+c.Method) {
		parts = append(parts, c.Method)
	}
	parts = append(parts, v.varying("", []string{"seed=" + seed})...)
	return shorten(strings.Join(parts, "."))
}

// varying returns the varying assignments of a list.
func (v *Variation) varying(scope string, list []string) []string {
	return slices.DeleteFunc(list, func(text string) bool { return !v.vary(scope, text) })
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
func settingsOf(c sweep.Cell) []string {
	list := sweep.Assignments(c.Settings)
	if i := slices.Index(list, "noise_std="+c.Sigma.String()); i >= 0 {
		list[i] = "noise_std=sigma"
	}
	return list
}

// noiseText names the noise, without photons as its sigma alone.
func noiseText(c sweep.Cell) string {
	return strings.TrimSpace(c.Sigma.String() + " " + c.PhotonsText())
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
			sum := sha256.Sum256([]byte(strings.Join([]string{c.Task, c.Params, noiseText(c), c.Size, c.Method, c.Prior, c.Settings}, "\x00")))
			names[i] += "~" + hex.EncodeToString(sum[:4])
		}
	}
	return names
}
