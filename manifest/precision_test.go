package manifest

import (
	"errors"
	"strings"
	"testing"
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

// An item has the precision of its spec, or the choice for auto; a failed one too.
func TestExpandPrecision(t *testing.T) {
	t.Parallel()
	good, bad := Row{Name: "x", Image: "/x.png"}, Row{Name: "y", Image: "/y.png", Err: errors.New("no such file")}
	for _, c := range []struct{ spec, chosen, want Precision }{
		{"", "", ""}, {PrecisionFloat16, "", PrecisionFloat16}, {PrecisionAuto, PrecisionBFloat16, PrecisionBFloat16},
	} {
		spec := testSpec()
		spec.Precision = c.spec
		e := NewExpander(spec, "prior", testResolve)
		if c.chosen != "" {
			e.SetPrecision(c.chosen)
		}
		items, _ := e.Expand(good, testProbe(), 0)
		_, failed := e.Expand(bad, Probe{}, len(items))
		if len(items) == 0 || len(failed) == 0 {
			t.Fatalf("%d items, %d failed", len(items), len(failed))
		}
		for _, it := range items {
			if it.Precision != c.want || it.CheckID() != nil {
				t.Errorf("%+v: an item has %q", c, it.Precision)
			}
		}
		for _, r := range failed {
			if r.Item.Precision != c.want {
				t.Errorf("%+v: a failed item has %q", c, r.Item.Precision)
			}
		}
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

// A record has the precision of its spec. With auto it has none until the choice is recorded; a record with another choice
// is refused.
func TestCampaignNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec, chosen, want Precision
		ok                 bool
		err                string
	}{
		{"", "", "", true, ""},
		{PrecisionFloat16, "", PrecisionFloat16, true, ""},
		{PrecisionAuto, "", "", false, ""},
		{PrecisionAuto, PrecisionBFloat16, PrecisionBFloat16, true, ""},
		{PrecisionAuto, PrecisionAuto, PrecisionAuto, true, `precision: "auto" is none of float32`},
		{PrecisionFloat32, PrecisionBFloat16, PrecisionFloat32, true, "precision: bfloat16 is chosen, but"},
	} {
		record := Campaign{Schema: 1, ID: "demo-00000000", Output: "demo", Weight: 1, Priority: PriorityNormal, Precision: c.chosen}
		record.Spec.Precision = c.spec
		if got, ok := record.Needs(); got != c.want || ok != c.ok {
			t.Errorf("%+v: needs %q, %v", c, got, ok)
		}
		checkError(t, string(c.spec), record.Validate(), c.err)
	}
}

func TestUsedPrecision(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]Precision{"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "": "", "int4": "int4"} {
		if got := (Runtime{Precision: value}).Used(); got != want {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}
