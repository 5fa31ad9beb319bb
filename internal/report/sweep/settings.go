package sweep

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ddiff/restore/item"
)

// Parameters and settings are lists of assignments in one string: "factor=4", "steps=120;gamma0=8;sigma_rule=ddpm".

// Params lists the parameters of an item's operator by name, then what else makes the operator another one, but a mask and a kernel, see Files.
func Params(it *item.Item) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(it.Params)) {
		list = append(list, name+"="+Exact(it.Params[name]))
	}
	if it.Operator != nil {
		list = append(list, fileText("operator", it.Operator))
	}
	if r := it.MeasurementRange; r != nil {
		list = append(list, fmt.Sprintf("measurement_range=%v..%v", r[0], r[1]))
	}
	return strings.Join(list, ";")
}

func fileText(name string, s *item.Source) string {
	return name + "=sha256:" + s.SHA256[:min(8, len(s.SHA256))]
}

// Files are the digests of an item's mask and kernel as parameters, such as "mask=sha256:0123abcd"; empty without.
func Files(it *item.Item) string {
	var list []string
	if it.Mask != nil {
		list = append(list, fileText("mask", it.Mask))
	}
	if it.Kernel != nil {
		list = append(list, fileText("kernel", it.Kernel))
	}
	return strings.Join(list, ";")
}

// Join joins two lists of assignments.
func Join(a, b string) string { return strings.Trim(a+";"+b, ";") }

// OfSolver is a list of settings without those around the solver: tiles and keep_observed.
func OfSolver(settings string) string {
	return strings.Join(slices.DeleteFunc(Assignments(settings), func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains([]string{"tile", "overlap", "keep_observed"}, name)
	}), ";")
}

// Setting is a setting of a solver; a word has no quotation marks.
type Setting struct{ Name, Value string }

// Settings are those of a solver in the order of their JSON object.
func Settings(solver json.RawMessage) ([]Setting, error) {
	if len(solver) == 0 || string(solver) == "null" {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(solver))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("decode solver settings: want a JSON object, got %.40q", solver)
	}
	var out []Setting
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("decode solver settings: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("decode solver setting %v: %w", name, err)
		}
		text := string(value)
		var word string
		if json.Unmarshal(value, &word) == nil {
			text = word
		}
		out = append(out, Setting{fmt.Sprint(name), text})
	}
	return out, nil
}

// Assignments splits a list.
func Assignments(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ";")
}

// compareAssignments orders lists by their values, numbers by size.
func compareAssignments(a, b string) int {
	if a == b {
		return 0
	}
	x, y := Assignments(a), Assignments(b)
	for i := range min(len(x), len(y)) {
		n, v, _ := strings.Cut(x[i], "=")
		m, w, _ := strings.Cut(y[i], "=")
		order := strings.Compare(n, m)
		if order == 0 && v != w {
			p, errP := strconv.ParseFloat(v, 64)
			q, errQ := strconv.ParseFloat(w, 64)
			if errP == nil && errQ == nil {
				order = cmp.Compare(p, q)
			}
			order = cmp.Or(order, strings.Compare(v, w))
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(x), len(y))
}

// Without are the assignments of a list that are none of part, a result of [VaryingAssignments].
func Without(list, part string) []string {
	return slices.DeleteFunc(Assignments(list), func(a string) bool { return slices.Contains(strings.Fields(part), a) })
}

// VaryingAssignments returns the assignments of each list that not all lists share, and whether there are any.
func VaryingAssignments(lists []string) (varying []string, any bool) {
	count := make(map[string]int)
	for _, list := range lists {
		for _, a := range Assignments(list) {
			count[a]++
		}
	}
	varying = make([]string, len(lists))
	for i, list := range lists {
		var kept []string
		for _, a := range Assignments(list) {
			if count[a] < len(lists) {
				kept = append(kept, a)
			}
		}
		varying[i] = strings.Join(kept, " ")
		any = any || len(kept) > 0
	}
	return varying, any
}

// containsAssignments reports whether list has every assignment of part.
func containsAssignments(list, part string) bool {
	all := Assignments(list)
	for _, a := range Assignments(part) {
		if !slices.Contains(all, a) {
			return false
		}
	}
	return true
}

// Exact is the shortest text that has the value.
func Exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
