package manifest

import (
	"errors"
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// Each fixed precision gives a campaign and its items identities of their own, which must not change; the measurement and
// the noise of a run are those of the item without a precision.
func TestPrecisionIdentities(t *testing.T) {
	t.Parallel()
	_, measurement, _, run := keys(t, testItem())
	seen := map[string]Precision{}
	for p, want := range map[Precision]string{
		"": "87a692d54b40", PrecisionFloat32: "0fd56dfbefc5", PrecisionBFloat16: "f2fac327890a", PrecisionFloat16: "d5a2fd7cd53c",
	} {
		it := testItem()
		it.Precision = p
		id, gotMeasurement, _, gotRun := keys(t, it)
		if !strings.HasPrefix(id, want) || gotMeasurement != measurement || gotRun != run {
			t.Errorf("%q: identity %.12s, want %s; measurement %.12s, run %.12s", p, id, want, gotMeasurement, gotRun)
		}
		if other, twice := seen[id]; twice {
			t.Errorf("%q and %q share an identity", p, other)
		}
		seen[id] = p
		it.ID = id
		if it.Precision = PrecisionFloat16; p != it.Precision && it.CheckID() == nil {
			t.Errorf("an item of %q passes as float16", p)
		}
	}
}

// Tasks of float32 have it beside another precision, also those that only a row names, and failed items of theirs.
func TestExpandFloat32(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	spec.Tasks = []item.Task{{Name: "phase_retrieval"}, {Name: "hdr"}}
	spec.Float32 = []string{"phase_retrieval", "jpeg"}
	named := Row{Name: "z", Image: "/z.png"}
	named.Overrides.Task = "jpeg"
	rows := []Row{{Name: "x", Image: "/x.png"}, named, {Name: "y", Image: "/y.png", Err: errors.New("no such file")}}
	for _, c := range []struct{ spec, exact, other Precision }{
		{"", "", ""}, {PrecisionBFloat16, PrecisionFloat32, PrecisionBFloat16}, {PrecisionFloat32, PrecisionFloat32, PrecisionFloat32},
	} {
		spec.Precision = c.spec
		e := NewExpander(spec, "prior", testResolve)
		all := map[string]int{}
		for _, row := range rows {
			items, failed := e.Expand(row, testProbe(), 0)
			if row.Err == nil && len(failed) > 0 {
				t.Fatalf("%s: %s", row.Name, failed[0].Reason)
			}
			for _, r := range failed {
				items = append(items, r.Item)
			}
			for _, it := range items {
				want := c.exact
				if it.Task == "hdr" {
					want = c.other
				}
				if it.Precision != want || row.Err == nil && it.CheckID() != nil {
					t.Errorf("%+v: %s of row %s has %q, want %q", c, it.Task, it.Name, it.Precision, want)
				}
				all[it.Task]++
			}
		}
		if all["phase_retrieval"] == 0 || all["hdr"] == 0 || all["jpeg"] == 0 {
			t.Fatalf("items by task: %v", all)
		}
	}
}

// With auto, sensitive tasks stay in float32; a campaign without others is one of float32.
func TestKeepFloat32(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		precision         Precision
		tasks, given      []string
		want              Precision
		wantList, reports string
	}{
		{PrecisionAuto, []string{"hdr", "phase_retrieval"}, nil, PrecisionAuto, "phase_retrieval", "phase_retrieval"},
		{PrecisionAuto, []string{"hdr"}, nil, PrecisionAuto, "phase_retrieval", ""},
		{PrecisionAuto, []string{"phase_retrieval", "phase_retrieval"}, nil, PrecisionFloat32, "phase_retrieval", "phase_retrieval"},
		{PrecisionAuto, []string{"hdr", "phase_retrieval"}, []string{"hdr"}, PrecisionFloat32, "hdr phase_retrieval", "hdr phase_retrieval"},
		{PrecisionAuto, []string{"hdr", "jpeg"}, []string{"phase_retrieval", "hdr"}, PrecisionAuto, "phase_retrieval hdr", "hdr"},
		{PrecisionAuto, nil, nil, PrecisionAuto, "phase_retrieval", ""},
		{PrecisionBFloat16, []string{"phase_retrieval"}, nil, PrecisionBFloat16, "", ""},
		{"", []string{"phase_retrieval"}, nil, "", "", ""},
	} {
		spec := &Spec{Precision: c.precision, Float32: c.given}
		for _, name := range c.tasks {
			spec.Tasks = append(spec.Tasks, item.Task{Name: name})
		}
		kept := spec.KeepFloat32([]string{"phase_retrieval"})
		if got := strings.Join(spec.Float32, " "); spec.Precision != c.want || got != c.wantList || strings.Join(kept, " ") != c.reports {
			t.Errorf("%+v: %q, float32 %q, reported %q", c, spec.Precision, got, kept)
		}
		if spec.KeepFloat32([]string{"phase_retrieval"}); strings.Join(spec.Float32, " ") != c.wantList {
			t.Errorf("%+v: float32 %q the second time", c, spec.Float32)
		}
	}
}

func TestSpecFloat32(t *testing.T) {
	t.Parallel()
	const rest = "dataset: {path: photos}\ntasks: [hdr]\n"
	for lines, want := range map[string]string{
		"precision: auto\nfloat32: [phase_retrieval, hdr]":   "",
		"precision: float16\nfloat32: [hdr]":                 "",
		"precision: auto\nfloat32: [blur]\nleft_out: [blur]": "",
		"float32: [hdr]":                                        "c.yaml:1: float32: needs the field precision, which other tasks have",
		"precision: auto\nfloat32: [hd]":                        `c.yaml:2: float32[0]: unknown task "hd" (did you mean "hdr"?)`,
		"precision: auto\nfloat32: hdr":                         "c.yaml:2: float32: ",
		"precision: auto\nfloat32: [hdr, phase_retrieval, hdr]": `c.yaml:2: float32[2]: task "hdr" is repeated; remove one`,
	} {
		_, err := validated(lines+"\n"+rest, testCatalogue(operator.Definition{Name: "hdr"}, operator.Definition{Name: "phase_retrieval"}))
		checkError(t, lines, err, want)
	}
}

func TestSpecPrecision(t *testing.T) {
	t.Parallel()
	const rest = "dataset: {path: photos}\ntasks: [hdr]\n"
	for line, want := range map[string]string{
		"": "", "precision: float32": "", "precision: bfloat16": "", "precision: float16": "", "precision: auto": "",
		"precision: fp16":     `c.yaml:1: precision: unknown value "fp16" (valid: float32, bfloat16, float16, auto)`,
		"precision: bfloat61": `c.yaml:1: precision: unknown value "bfloat61" (did you mean "bfloat16"?)`,
		`precision: ""`:       "c.yaml:1: precision: is empty; give a value or remove the field",
		"precision: 16":       "c.yaml:1: precision: ",
	} {
		s, err := Parse("c.yaml", []byte(line+"\n"+rest), "/data")
		checkError(t, line, err, want)
		if err == nil && string(s.Precision) != strings.TrimPrefix(line, "precision: ") {
			t.Errorf("%s: parsed as %q", line, s.Precision)
		}
	}
}
